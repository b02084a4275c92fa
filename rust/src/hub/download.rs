//! Downloads several files in chunks over parallel connections.

use std::collections::VecDeque;
use std::fs::TryLockError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::cache_file;
use super::client::Client;
use super::fetch::Fetcher;
use super::job::{FileOrder, Job};
use super::retry::FetchError;

pub struct DownloadOptions {
    pub connections: usize,
    /// For new downloads; resumed ones keep their chunk size.
    pub chunk_bytes: u64,
}

pub struct Progress {
    pub done: u64,
    pub total: u64,
    /// Another process is downloading one of the files.
    pub waiting: bool,
    /// Why a request is being retried, if it is.
    pub trouble: Option<String>,
}

const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// Downloads every missing file. Calls `progress` on this thread about 20 times per second; if it returns false, the
/// download stops and can be resumed later.
pub fn download(
    client: &Client,
    mut orders: Vec<FileOrder>,
    options: &DownloadOptions,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(), FetchError> {
    let total = orders.iter().map(|order| order.size).sum();
    // All processes lock in the same order, which prevents deadlocks.
    orders.sort_by(|a, b| a.lock.cmp(&b.lock));
    orders.dedup_by(|a, b| a.lock == b.lock);
    let mut jobs = Vec::new();
    for order in orders {
        if let Some(job) = open_job(order, options, total, progress)? {
            jobs.push(job);
        }
    }
    let missing: u64 = jobs.iter().map(|job| job.order.size).sum();
    let recorded: u64 = jobs.iter().map(|job| job.record.total()).sum();
    let work = Work {
        client,
        jobs: &jobs,
        queue: Mutex::new(VecDeque::new()),
        stop: AtomicBool::new(false),
        done: AtomicU64::new(total - missing + recorded),
        failure: Mutex::new(None),
        trouble: Mutex::new(None),
        connections: options.connections.max(1),
    };
    work.run(total, progress)
}

/// Waits for the file's lock. Returns None if the file already exists.
fn open_job(
    order: FileOrder,
    options: &DownloadOptions,
    total: u64,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Job>, FetchError> {
    let failed =
        |error: std::io::Error| FetchError::fatal(format!("{}: {error}", order.lock.display()));
    let lock = cache_file::open_or_create(&order.lock).map_err(failed)?;
    loop {
        if order.blob.exists() {
            return Ok(None);
        }
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let now = Progress {
            done: 0,
            total,
            waiting: true,
            trouble: None,
        };
        if !progress(now) {
            return Err(FetchError::Stopped);
        }
        std::thread::sleep(PROGRESS_EVERY);
    }
    if order.blob.exists() {
        return Ok(None);
    }
    let blob = order.blob.clone();
    let job = Job::open(order, lock, options.chunk_bytes.max(1));
    job.map(Some)
        .map_err(|error| FetchError::fatal(format!("{}: {error}", blob.display())))
}

struct Work<'a> {
    client: &'a Client,
    jobs: &'a [Job],
    /// Unassigned chunks, as indices of a job and its chunk.
    queue: Mutex<VecDeque<(usize, usize)>>,
    stop: AtomicBool,
    done: AtomicU64,
    failure: Mutex<Option<FetchError>>,
    trouble: Mutex<Option<String>>,
    connections: usize,
}

impl Work<'_> {
    fn run(
        &self,
        total: u64,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), FetchError> {
        for index in 0..self.jobs.len() {
            if self.jobs[index].unfinished.load(Ordering::Relaxed) == 0 {
                self.finish(index)?;
            } else {
                self.queue_missing(index);
            }
        }
        let running = AtomicUsize::new(self.connections);
        std::thread::scope(|scope| {
            for _ in 0..self.connections {
                scope.spawn(|| {
                    let _ends = Countdown(&running);
                    self.work();
                });
            }
            while running.load(Ordering::Acquire) > 0 {
                let done = self.done.load(Ordering::Relaxed).min(total);
                let wanted = progress(Progress {
                    done,
                    total,
                    waiting: false,
                    trouble: self
                        .trouble
                        .lock()
                        .expect("the mutex is not poisoned")
                        .take(),
                });
                if !wanted {
                    self.fail(FetchError::Stopped);
                }
                std::thread::sleep(PROGRESS_EVERY);
            }
        });
        let failure = self
            .failure
            .lock()
            .expect("the mutex is not poisoned")
            .take();
        failure.map_or(Ok(()), Err)
    }

    fn queue_missing(&self, index: usize) {
        let record = &self.jobs[index].record;
        let missing = (0..record.chunks()).filter(|chunk| !record.is_whole(*chunk));
        let mut queue = self.queue.lock().expect("the mutex is not poisoned");
        queue.extend(missing.map(|chunk| (index, chunk)));
    }

    fn work(&self) {
        while let Some((index, chunk)) = self.next() {
            if let Err(error) = self.fetch(index, chunk) {
                return self.fail(named(&self.jobs[index], error));
            }
        }
    }

    fn next(&self) -> Option<(usize, usize)> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.queue
            .lock()
            .expect("the mutex is not poisoned")
            .pop_front()
    }

    fn fetch(&self, index: usize, chunk: usize) -> Result<(), FetchError> {
        let job = &self.jobs[index];
        let fetcher = Fetcher {
            client: self.client,
            // All connections together leave at most half a chunk unrecorded; the other half allows for unread data.
            unrecorded_bytes: (job.record.chunk_bytes() / (2 * self.connections as u64)).max(1),
            stop: &self.stop,
            done: &self.done,
            trouble: &self.trouble,
        };
        fetcher.fetch_chunk(job, chunk)?;
        if job.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish(index)?;
        }
        Ok(())
    }

    /// Called when every chunk is complete. If the hash does not match, the file is downloaded once more.
    fn finish(&self, index: usize) -> Result<(), FetchError> {
        let job = &self.jobs[index];
        let right = job
            .finish()
            .map_err(|error| FetchError::fatal(format!("{}: {error}", job.order.blob.display())))?;
        if right {
            return Ok(());
        }
        self.done.fetch_sub(job.order.size, Ordering::Relaxed);
        if job.failed_once.swap(true, Ordering::AcqRel) || job.record.chunks() == 0 {
            return Err(FetchError::fatal(
                "the downloaded file did not match the hub's hash twice; it was discarded",
            ));
        }
        *job.location.lock().expect("the mutex is not poisoned") = None;
        job.unfinished.store(job.record.chunks(), Ordering::Release);
        self.queue_missing(index);
        Ok(())
    }

    /// Only the first failure is reported.
    fn fail(&self, error: FetchError) {
        let mut failure = self.failure.lock().expect("the mutex is not poisoned");
        if failure.is_none() {
            *failure = Some(error);
        }
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn named(job: &Job, error: FetchError) -> FetchError {
    match error {
        FetchError::Final { status, reason } => FetchError::Final {
            status,
            reason: format!("{}: {reason}", job.order.name),
        },
        other => other,
    }
}

/// Counts down even if its thread panics, so that the caller does not wait forever.
struct Countdown<'a>(&'a AtomicUsize);

impl Drop for Countdown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

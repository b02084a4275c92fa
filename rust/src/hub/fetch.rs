//! The bytes of one chunk, from the network into the data file.

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ureq::http::StatusCode;

use super::client::{Answer, Client, header};
use super::job::Job;
use super::retry::Trouble;

/// Answers to a range that ignore it, one after the other, until we believe that the server has no ranges.
const IGNORED_RANGES: u32 = 3;
const READ_BYTES: usize = 64 << 10;

pub struct Fetcher<'a> {
    pub client: &'a Client,
    /// Bytes that a connection may hold back from the record: what a killed process fetches again.
    pub unrecorded_bytes: u64,
    pub stop: &'a AtomicBool,
    /// Bytes that have come, of all files.
    pub done: &'a AtomicU64,
}

impl Fetcher<'_> {
    /// Until the chunk is whole, or asking again is of no use.
    pub fn fetch_chunk(&self, job: &Job, chunk: usize) -> Result<(), Trouble> {
        let mut patience = self.client.patience();
        let mut ignored = 0;
        while !job.record.is_whole(chunk) {
            self.check_stop()?;
            let before = job.record.got(chunk);
            let trouble = match self.fetch_once(job, chunk, &mut ignored) {
                Ok(()) => continue,
                Err(trouble) => trouble,
            };
            if job.record.got(chunk) > before {
                patience.progressed();
            }
            self.sleep(patience.wait_after(trouble)?)?;
        }
        Ok(())
    }

    fn fetch_once(&self, job: &Job, chunk: usize, ignored: &mut u32) -> Result<(), Trouble> {
        if job.without_ranges.load(Ordering::Acquire) {
            let _alone = job.stream.lock().expect("no panic holds it");
            return if job.record.is_whole(chunk) {
                Ok(())
            } else {
                self.stream_all(job)
            };
        }
        let begin = job.record.begin(chunk) + job.record.got(chunk);
        let end = job.record.begin(chunk) + job.record.len(chunk);
        let answer = self.ask(job, Some((begin, end)))?;
        if answer.response.status() == StatusCode::OK {
            // The whole file: of use if we begin at its beginning.
            if begin > 0 {
                *ignored += 1;
                let given_up = *ignored >= IGNORED_RANGES;
                job.without_ranges.fetch_or(given_up, Ordering::AcqRel);
                return Err(Trouble::again("the server ignored the range asked for"));
            }
        } else {
            check_range(&answer, begin, job.order.size)?;
        }
        *ignored = 0;
        let mut body = answer.response.into_body().into_reader();
        self.copy_chunk(&mut body, job, chunk)
    }

    /// All that is missing, from one answer that has the whole file.
    fn stream_all(&self, job: &Job) -> Result<(), Trouble> {
        let answer = self.ask(job, None)?;
        let mut body = answer.response.into_body().into_reader();
        for chunk in 0..job.record.chunks() {
            let there = job.record.got(chunk);
            self.skip(&mut body, there)?;
            self.copy_chunk(&mut body, job, chunk)?;
        }
        Ok(())
    }

    fn skip(&self, body: &mut impl Read, mut count: u64) -> Result<(), Trouble> {
        let mut buffer = [0; READ_BYTES];
        while count > 0 {
            self.check_stop()?;
            let most = count.min(READ_BYTES as u64) as usize;
            match body.read(&mut buffer[..most]) {
                Ok(0) => return Err(Trouble::again("the connection was cut")),
                Ok(read) => count -= read as u64,
                Err(error) => return Err(Trouble::again(error)),
            }
        }
        Ok(())
    }

    /// The rest of the chunk. What came before a cut is kept.
    fn copy_chunk(&self, body: &mut impl Read, job: &Job, chunk: usize) -> Result<(), Trouble> {
        let (begin, len) = (job.record.begin(chunk), job.record.len(chunk));
        let mut recorded = job.record.got(chunk);
        let mut at = recorded;
        let mut buffer = [0; READ_BYTES];
        let mut end = Ok(());
        while at < len && end.is_ok() {
            let most = (len - at).min(READ_BYTES as u64) as usize;
            end = match body.read(&mut buffer[..most]) {
                Ok(0) => Err(Trouble::again("the connection was cut")),
                Ok(count) => {
                    let written = job.data.write_all_at(&buffer[..count], begin + at);
                    written.map_err(|error| disk_trouble(job, error))?;
                    at += count as u64;
                    self.done.fetch_add(count as u64, Ordering::Relaxed);
                    self.check_stop()
                }
                Err(error) => Err(Trouble::again(error)),
            };
            if at - recorded >= self.unrecorded_bytes {
                record(job, chunk, at)?;
                recorded = at;
            }
        }
        record(job, chunk, at)?;
        end
    }

    /// Asks where the hub sent us last time; asks the hub when there was no such time, or that place refuses now.
    fn ask(&self, job: &Job, range: Option<(u64, u64)>) -> Result<Answer, Trouble> {
        let known = job.location.lock().expect("no panic holds it").clone();
        if let Some(url) = known {
            return self.client.get(&url, range).inspect_err(|_| {
                *job.location.lock().expect("no panic holds it") = None;
            });
        }
        let hub = self.client.url_of(&job.order.url_path);
        let answer = self.client.get(&hub, range)?;
        if let Some(etag) = &answer.etag
            && !etag.eq_ignore_ascii_case(&job.order.hash)
        {
            return Err(Trouble::again(format!(
                "the hub's tag of the file changed to {etag}"
            )));
        }
        if !self.client.is_hub(&answer.url) {
            *job.location.lock().expect("no panic holds it") = Some(answer.url.clone());
        }
        Ok(answer)
    }

    fn check_stop(&self) -> Result<(), Trouble> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Trouble::Stopped);
        }
        Ok(())
    }

    fn sleep(&self, time: Duration) -> Result<(), Trouble> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.check_stop()?;
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }
}

fn record(job: &Job, chunk: usize, count: u64) -> Result<(), Trouble> {
    let synced = job.data.sync_data();
    synced
        .and_then(|()| job.record.set(chunk, count))
        .map_err(|error| disk_trouble(job, error))
}

fn disk_trouble(job: &Job, error: std::io::Error) -> Trouble {
    Trouble::finally(format!("{}: {error}", job.order.blob.display()))
}

/// "bytes 100-199/250" must begin where we asked, in a file of the size we know.
fn check_range(answer: &Answer, begin: u64, size: u64) -> Result<(), Trouble> {
    let text = header(answer.response.headers(), "content-range").unwrap_or("");
    if range_begins(text, begin, size) {
        return Ok(());
    }
    Err(Trouble::again(format!(
        "asked for a range from byte {begin} of {size}, got \"{text}\""
    )))
}

fn range_begins(content_range: &str, begin: u64, size: u64) -> bool {
    let parts = || -> Option<(u64, &str)> {
        let (range, total) = content_range.strip_prefix("bytes ")?.split_once('/')?;
        Some((range.split_once('-')?.0.trim().parse().ok()?, total.trim()))
    };
    parts()
        .is_some_and(|(first, total)| first == begin && (total == "*" || total.parse() == Ok(size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_held_to_what_was_asked() {
        assert!(range_begins("bytes 100-199/250", 100, 250));
        assert!(range_begins("bytes 100-120/*", 100, 250));
        for wrong in [
            "bytes 99-199/250",
            "bytes 100-199/251",
            "bytes */250",
            "100-199/250",
            "",
        ] {
            assert!(!range_begins(wrong, 100, 250), "{wrong}");
        }
    }
}

//! Downloads one chunk into the data file.

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ureq::http::StatusCode;

use super::client::{Answer, Client, header};
use super::job::Job;
use super::retry::FetchError;

/// Consecutive responses that ignore the range before the server is assumed not to support ranges.
const IGNORED_RANGES: u32 = 3;
const READ_BYTES: usize = 64 << 10;

pub struct Fetcher<'a> {
    pub client: &'a Client,
    /// Bytes per connection that may be unrecorded: a killed process downloads them again.
    pub unrecorded_bytes: u64,
    pub stop: &'a AtomicBool,
    /// Bytes received, over all files.
    pub done: &'a AtomicU64,
    /// Receives the reason for each retry.
    pub trouble: &'a Mutex<Option<String>>,
}

impl Fetcher<'_> {
    /// Retries until the chunk is complete or an error is final.
    pub fn fetch_chunk(&self, job: &Job, chunk: usize) -> Result<(), FetchError> {
        let mut backoff = self.client.backoff();
        let mut ignored = 0;
        while !job.record.is_whole(chunk) {
            self.check_stop()?;
            let before = job.record.got(chunk);
            let error = match self.fetch_once(job, chunk, &mut ignored) {
                Ok(()) => continue,
                Err(error) => error,
            };
            if job.record.got(chunk) > before {
                backoff.progressed();
            }
            let reason = error.reason().to_string();
            let wait = backoff.wait_after(error)?;
            *self.trouble.lock().expect("the mutex is not poisoned") = Some(reason);
            self.sleep(wait)?;
        }
        Ok(())
    }

    fn fetch_once(&self, job: &Job, chunk: usize, ignored: &mut u32) -> Result<(), FetchError> {
        if job.without_ranges.load(Ordering::Acquire) {
            let _alone = job.stream.lock().expect("the mutex is not poisoned");
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
            // The response is the whole file, which is usable only from its beginning.
            if begin > 0 {
                *ignored += 1;
                let given_up = *ignored >= IGNORED_RANGES;
                job.without_ranges.fetch_or(given_up, Ordering::AcqRel);
                return Err(FetchError::retry("the server ignored the requested range"));
            }
        } else {
            check_range(&answer, begin, job.order.size)?;
        }
        *ignored = 0;
        let mut body = answer.response.into_body().into_reader();
        self.copy_chunk(&mut body, job, chunk)
    }

    /// Fills all missing bytes from one response with the whole file.
    fn stream_all(&self, job: &Job) -> Result<(), FetchError> {
        let answer = self.ask(job, None)?;
        let mut body = answer.response.into_body().into_reader();
        for chunk in 0..job.record.chunks() {
            let there = job.record.got(chunk);
            self.skip(&mut body, there)?;
            self.copy_chunk(&mut body, job, chunk)?;
        }
        Ok(())
    }

    fn skip(&self, body: &mut impl Read, mut count: u64) -> Result<(), FetchError> {
        let mut buffer = [0; READ_BYTES];
        while count > 0 {
            self.check_stop()?;
            let most = count.min(READ_BYTES as u64) as usize;
            match body.read(&mut buffer[..most]) {
                Ok(0) => return Err(FetchError::retry("the connection was closed early")),
                Ok(read) => count -= read as u64,
                Err(error) => return Err(FetchError::retry(error)),
            }
        }
        Ok(())
    }

    /// Copies the rest of the chunk. Bytes received before an error are kept.
    fn copy_chunk(&self, body: &mut impl Read, job: &Job, chunk: usize) -> Result<(), FetchError> {
        let (begin, len) = (job.record.begin(chunk), job.record.len(chunk));
        let mut recorded = job.record.got(chunk);
        let mut at = recorded;
        let mut buffer = [0; READ_BYTES];
        let mut end = Ok(());
        while at < len && end.is_ok() {
            let most = (len - at).min(READ_BYTES as u64) as usize;
            end = match body.read(&mut buffer[..most]) {
                Ok(0) => Err(FetchError::retry("the connection was closed early")),
                Ok(count) => {
                    let written = job.data.write_all_at(&buffer[..count], begin + at);
                    written.map_err(|error| disk_error(job, error))?;
                    at += count as u64;
                    self.done.fetch_add(count as u64, Ordering::Relaxed);
                    self.check_stop()
                }
                Err(error) => Err(FetchError::retry(error)),
            };
            if at - recorded >= self.unrecorded_bytes {
                record(job, chunk, at)?;
                recorded = at;
            }
        }
        record(job, chunk, at)?;
        end
    }

    /// Requests the URL of the last redirect, or the hub if there is none or the last request to it failed.
    fn ask(&self, job: &Job, range: Option<(u64, u64)>) -> Result<Answer, FetchError> {
        let known = job
            .location
            .lock()
            .expect("the mutex is not poisoned")
            .clone();
        if let Some(url) = known {
            return self.client.get(&url, range).inspect_err(|_| {
                *job.location.lock().expect("the mutex is not poisoned") = None;
            });
        }
        let hub = self.client.url_of(&job.order.url_path);
        let answer = self.client.get(&hub, range)?;
        if let Some(etag) = &answer.etag
            && !etag.eq_ignore_ascii_case(&job.order.hash)
        {
            return Err(FetchError::retry(format!(
                "the hub's ETag of the file changed to {etag}"
            )));
        }
        if !self.client.is_hub(&answer.url) {
            *job.location.lock().expect("the mutex is not poisoned") = Some(answer.url.clone());
        }
        Ok(answer)
    }

    fn check_stop(&self) -> Result<(), FetchError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(FetchError::Stopped);
        }
        Ok(())
    }

    fn sleep(&self, time: Duration) -> Result<(), FetchError> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.check_stop()?;
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }
}

fn record(job: &Job, chunk: usize, count: u64) -> Result<(), FetchError> {
    let synced = job.data.sync_data();
    synced
        .and_then(|()| job.record.set(chunk, count))
        .map_err(|error| disk_error(job, error))
}

fn disk_error(job: &Job, error: std::io::Error) -> FetchError {
    FetchError::fatal(format!("{}: {error}", job.order.blob.display()))
}

/// "bytes 100-199/250" must begin at `begin` and state the expected size.
fn check_range(answer: &Answer, begin: u64, size: u64) -> Result<(), FetchError> {
    let text = header(answer.response.headers(), "content-range").unwrap_or("");
    if range_begins(text, begin, size) {
        return Ok(());
    }
    Err(FetchError::retry(format!(
        "requested a range from byte {begin} of {size}, got \"{text}\""
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
    fn content_range_must_match_the_request() {
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

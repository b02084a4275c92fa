//! One file of a download: its data file, its progress record, and the final move to its blob.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::cache_file;
use super::record::Record;
use super::verify;

/// A file to download and its destination.
pub struct FileOrder {
    /// For messages.
    pub name: String,
    /// On the hub, with a leading slash.
    pub url_path: String,
    pub size: u64,
    /// The SHA-256, or git's SHA-1 of a blob, in hex.
    pub hash: String,
    /// The path of the complete file.
    pub blob: PathBuf,
    /// Held during the download; the same lock file as huggingface_hub's.
    pub lock: PathBuf,
}

pub struct Job {
    pub order: FileOrder,
    pub data: File,
    pub record: Record,
    /// The URL the hub redirected to; cleared after an error.
    pub location: Mutex<Option<String>>,
    /// The server does not support ranges: one stream at a time downloads the whole file.
    pub without_ranges: AtomicBool,
    pub stream: Mutex<()>,
    /// Incomplete chunks.
    pub unfinished: AtomicUsize,
    /// The file was complete once, with a wrong hash.
    pub failed_once: AtomicBool,
    _lock: File,
}

impl Job {
    /// The caller holds `lock`. Resumes an earlier download.
    pub fn open(order: FileOrder, lock: File, chunk_bytes: u64) -> io::Result<Job> {
        let data_path = with_suffix(&order.blob, ".octavo.incomplete");
        let record_path = with_suffix(&order.blob, ".octavo.progress");
        let data = cache_file::open_or_create(&data_path)?;
        let earlier = if data.metadata()?.len() == order.size {
            Record::resume(&record_path, order.size, &order.hash)
        } else {
            None
        };
        let record = match earlier {
            Some(record) => record,
            None => {
                data.set_len(0)?;
                data.set_len(order.size)?;
                Record::create(&record_path, order.size, &order.hash, chunk_bytes)?
            }
        };
        let whole = |chunk: &usize| !record.is_whole(*chunk);
        let unfinished = (0..record.chunks()).filter(whole).count();
        Ok(Job {
            order,
            data,
            record,
            location: Mutex::new(None),
            without_ranges: AtomicBool::new(false),
            stream: Mutex::new(()),
            unfinished: AtomicUsize::new(unfinished),
            failed_once: AtomicBool::new(false),
            _lock: lock,
        })
    }

    /// Called when all bytes are present: verifies the hash and renames the file to the blob. Returns false, discarding
    /// the progress, if the hash does not match.
    pub fn finish(&self) -> io::Result<bool> {
        let data_path = with_suffix(&self.order.blob, ".octavo.incomplete");
        let mut file = cache_file::open_existing(&data_path)?;
        let right = verify::holds(&mut file, self.order.size, &self.order.hash)?;
        if right != Some(true) {
            self.record.forget_all()?;
            return Ok(false);
        }
        self.data.sync_all()?;
        std::fs::rename(&data_path, &self.order.blob)?;
        if let Some(folder) = self.order.blob.parent() {
            File::open(folder)?.sync_all()?;
        }
        // Another process that found the blob may have removed the record already.
        match std::fs::remove_file(with_suffix(&self.order.blob, ".octavo.progress")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        }
    }
}

/// The names differ from those of huggingface_hub's partial files, which it would resume from their length.
fn with_suffix(blob: &Path, suffix: &str) -> PathBuf {
    let mut path = blob.as_os_str().to_os_string();
    path.push(suffix);
    path.into()
}

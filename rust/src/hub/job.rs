//! One file of a download: its data file, its record, and the step that makes it a blob.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::record::Record;
use super::verify;

/// What to fetch and where to put it.
pub struct FileOrder {
    /// For messages.
    pub name: String,
    /// On the hub, with the slash at its beginning.
    pub url_path: String,
    pub size: u64,
    /// The SHA-256, or git's SHA-1 of a blob, in hex.
    pub hash: String,
    /// Where the whole file shall be.
    pub blob: PathBuf,
    /// Held while it is fetched; the same file that huggingface_hub locks.
    pub lock: PathBuf,
}

pub struct Job {
    pub order: FileOrder,
    pub data: File,
    pub record: Record,
    /// Where the hub redirected to; asked for again when it is refused there.
    pub location: Mutex<Option<String>>,
    /// The server does not serve ranges of it: one stream at a time fetches all.
    pub without_ranges: AtomicBool,
    pub stream: Mutex<()>,
    /// Chunks that are not whole yet.
    pub unfinished: AtomicUsize,
    /// It was whole once, with a wrong hash.
    pub failed_once: AtomicBool,
    _lock: File,
}

impl Job {
    /// The caller holds `lock`. Goes on where an earlier download stopped.
    pub fn open(order: FileOrder, lock: File, chunk_bytes: u64) -> io::Result<Job> {
        let data_path = beside(&order.blob, ".octavo.incomplete");
        let record_path = beside(&order.blob, ".octavo.progress");
        let data = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&data_path)?;
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

    /// All bytes are there: checks them and makes the file the blob. False: they are not the right ones, and nothing
    /// of them is kept.
    pub fn finish(&self) -> io::Result<bool> {
        let data_path = beside(&self.order.blob, ".octavo.incomplete");
        let mut file = File::open(&data_path)?;
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
        std::fs::remove_file(beside(&self.order.blob, ".octavo.progress"))?;
        Ok(true)
    }
}

/// huggingface_hub's own unfinished files have other names: it would take ours for a beginning of the file.
fn beside(blob: &Path, ending: &str) -> PathBuf {
    let mut path = blob.as_os_str().to_os_string();
    path.push(ending);
    path.into()
}

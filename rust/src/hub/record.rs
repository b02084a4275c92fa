//! Records which bytes of a download are on disk, in a small file next to the data.
//!
//! A header of fixed size identifies the download. It is followed by one little-endian u64 per chunk: the number of
//! bytes present from the chunk's start. The caller syncs the bytes to disk before it sets a count.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cache_file;

const HEAD_BYTES: usize = 160;

pub struct Record {
    file: File,
    size: u64,
    chunk_bytes: u64,
    got: Vec<AtomicU64>,
}

impl Record {
    /// Opens the record at `path` if it belongs to this download; it determines the chunk size.
    pub fn resume(path: &Path, size: u64, hash: &str) -> Option<Record> {
        let mut file = cache_file::open_existing(path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let head = std::str::from_utf8(bytes.get(..HEAD_BYTES)?).ok()?;
        let chunk_bytes: u64 = head.split_whitespace().nth(3)?.parse().ok()?;
        if chunk_bytes == 0 || head.as_bytes() != head_of(size, chunk_bytes, hash).as_bytes() {
            return None;
        }
        let counts = bytes[HEAD_BYTES..].chunks(8);
        let got: Option<Vec<u64>> = counts
            .map(|count| Some(u64::from_le_bytes(count.try_into().ok()?)))
            .collect();
        let record = Record {
            file,
            size,
            chunk_bytes,
            got: got?.into_iter().map(AtomicU64::new).collect(),
        };
        let right = record.chunks() as u64 == size.div_ceil(chunk_bytes)
            && (0..record.chunks()).all(|chunk| record.got(chunk) <= record.len(chunk));
        right.then_some(record)
    }

    pub fn create(path: &Path, size: u64, hash: &str, chunk_bytes: u64) -> io::Result<Record> {
        let file = cache_file::open_or_create(path)?;
        file.set_len(0)?;
        let chunks = size.div_ceil(chunk_bytes) as usize;
        let mut bytes = head_of(size, chunk_bytes, hash).into_bytes();
        bytes.resize(HEAD_BYTES + 8 * chunks, 0);
        file.write_all_at(&bytes, 0)?;
        Ok(Record {
            file,
            size,
            chunk_bytes,
            got: (0..chunks).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    pub fn chunks(&self) -> usize {
        self.got.len()
    }

    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// The chunk's offset in the file.
    pub fn begin(&self, chunk: usize) -> u64 {
        chunk as u64 * self.chunk_bytes
    }

    pub fn len(&self, chunk: usize) -> u64 {
        self.chunk_bytes.min(self.size - self.begin(chunk))
    }

    pub fn got(&self, chunk: usize) -> u64 {
        self.got[chunk].load(Ordering::Acquire)
    }

    pub fn is_whole(&self, chunk: usize) -> bool {
        self.got(chunk) == self.len(chunk)
    }

    pub fn total(&self) -> u64 {
        (0..self.chunks()).map(|chunk| self.got(chunk)).sum()
    }

    /// Records that the first `count` bytes of the chunk are on disk. Never lowers the count.
    pub fn set(&self, chunk: usize, count: u64) -> io::Result<()> {
        if self.got[chunk].fetch_max(count, Ordering::AcqRel) < count {
            self.write(chunk, count)?;
        }
        Ok(())
    }

    pub fn forget_all(&self) -> io::Result<()> {
        for chunk in 0..self.chunks() {
            self.got[chunk].store(0, Ordering::Release);
            self.write(chunk, 0)?;
        }
        Ok(())
    }

    fn write(&self, chunk: usize, count: u64) -> io::Result<()> {
        let at = HEAD_BYTES as u64 + 8 * chunk as u64;
        self.file.write_all_at(&count.to_le_bytes(), at)
    }
}

fn head_of(size: u64, chunk_bytes: u64, hash: &str) -> String {
    let text = format!("octavo-download 1 {size} {chunk_bytes} {hash}");
    format!("{text:<width$}\n", width = HEAD_BYTES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_resumes_only_its_own_download() {
        let folder = std::env::temp_dir().join(format!("octavo-record-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.progress");
        let record = Record::create(&path, 250, "abc", 100).unwrap();
        record.set(0, 100).unwrap();
        record.set(2, 20).unwrap();
        record.set(2, 10).unwrap();
        drop(record);

        let again = Record::resume(&path, 250, "abc").unwrap();
        assert_eq!((again.chunks(), again.len(2), again.total()), (3, 50, 120));
        assert!(again.is_whole(0) && !again.is_whole(2));
        assert!(Record::resume(&path, 251, "abc").is_none());
        assert!(Record::resume(&path, 250, "abd").is_none());

        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 10, HEAD_BYTES, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(Record::resume(&path, 250, "abc").is_none(), "{cut}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

//! Opens files of the cache. A symbolic link is refused: it could lead to a file outside the cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading and writing; creates it if there is none, and keeps its contents if there is one.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true).write(true).create(true), path)
}

/// Opens an existing file for reading and writing.
pub fn open_existing(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true).write(true), path)
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options
        .truncate(false)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => io::Error::other("is a symbolic link; remove it and try again"),
            _ => error,
        })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(
            "is not a regular file; remove it and try again",
        ));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_refused_and_its_target_kept() {
        let folder = std::env::temp_dir().join(format!("octavo-cache-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (target, link) = (folder.join("precious"), folder.join("link"));
        std::fs::write(&target, "bytes").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for opened in [open_or_create(&link), open_existing(&link)] {
            assert!(opened.unwrap_err().to_string().contains("symbolic link"));
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"bytes");
        assert_eq!(open_existing(&target).unwrap().metadata().unwrap().len(), 5);
        assert!(open_or_create(&folder.join("new")).is_ok());
        assert!(open_existing(&folder.join("missing")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

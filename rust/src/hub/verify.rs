//! Verifies a file against the hub's hash.

use std::fs::File;
use std::io::{self, Read};

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// `hash`: 64 hex digits for SHA-256, 40 for the SHA-1 of a git blob. Returns None for any other length.
pub fn holds(file: &mut File, size: u64, hash: &str) -> io::Result<Option<bool>> {
    let found = match hash.len() {
        64 => hex_of(Sha256::new(), file)?,
        40 => hex_of(Sha1::new().chain_update(format!("blob {size}\0")), file)?,
        _ => return Ok(None),
    };
    Ok(Some(found.eq_ignore_ascii_case(hash)))
}

fn hex_of<D: Digest>(mut digest: D, file: &mut File) -> io::Result<String> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
    }
    let hex = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_git_and_of_lfs() {
        let path = std::env::temp_dir().join(format!("octavo-verify-{}", std::process::id()));
        std::fs::write(&path, "hello\n").unwrap();
        let check = |hash: &str| holds(&mut File::open(&path).unwrap(), 6, hash).unwrap();
        // As `git hash-object` and `sha256sum` print them.
        assert_eq!(
            check("ce013625030ba8dba906f756967f9e9ca394464a"),
            Some(true)
        );
        assert_eq!(
            check("5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"),
            Some(true)
        );
        assert_eq!(
            check("ce013625030ba8dba906f756967f9e9ca394464b"),
            Some(false)
        );
        assert_eq!(check("abc"), None);
        std::fs::remove_file(&path).unwrap();
    }
}

//! SHA-256, with the processor's SHA instructions if available.

use sha2::{Digest, Sha256};

use crate::border::{Status, guarded, slice};

/// # Safety
/// `data` points at `size` bytes (it may be null if `size` is 0) and `digest` at 32 writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_sha256(data: *const u8, size: usize, digest: *mut u8) -> Status {
    unsafe {
        guarded(std::ptr::null_mut(), || {
            let result = Sha256::digest(slice(data, size));
            std::ptr::copy_nonoverlapping(result.as_ptr(), digest, result.len());
            Ok(())
        })
    }
}

//! The C function of `include/octavo_images.h`.

use std::ffi::c_void;

use crate::border::{Failure, OwnedText, Status, guarded, slice};
use crate::images::{self, Limits};

/// Mirrors `octavo_image_limits`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ImageLimits {
    pixels: u64,
    side: u32,
}

/// Mirrors `octavo_image_target`.
#[repr(C)]
pub struct ImageTarget {
    reserve: unsafe extern "C" fn(*mut c_void, u32, u32) -> *mut u8,
    context: *mut c_void,
}

/// # Safety
/// `data` points at that many bytes, `target.reserve` returns null or width * height * 3 writable bytes,
/// `error` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn octavo_image_decode(
    data: *const u8,
    size: usize,
    limits: ImageLimits,
    target: ImageTarget,
    error: *mut OwnedText,
) -> Status {
    unsafe {
        guarded(error, || {
            let limits = Limits {
                pixels: limits.pixels,
                side: limits.side,
            };
            let image = images::decode(slice(data, size), limits)?;
            let (width, height) = image.upright_size();
            let out = (target.reserve)(target.context, width, height);
            if out.is_null() {
                return Err(Failure {
                    status: Status::Limit,
                    message: format!("there is no memory for {width} x {height} pixels"),
                });
            }
            image.write_upright(std::slice::from_raw_parts_mut(out, image.rgb.len()));
            Ok(())
        })
    }
}

//! Reads the orientation from EXIF data and writes pixels in that orientation.

use super::Decoded;

/// EXIF's values 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orientation(u8);

const UPRIGHT: Orientation = Orientation(1);
const ORIENTATION_TAG: u32 = 0x0112;

impl Orientation {
    /// Of EXIF data, with or without the prefix "Exif". Upright if the data is damaged.
    pub fn of_exif(exif: Option<&[u8]>) -> Orientation {
        match exif.and_then(orientation_tag) {
            Some(value @ 1..=8) => Orientation(value as u8),
            _ => UPRIGHT,
        }
    }

    fn swaps_sides(self) -> bool {
        self.0 >= 5
    }
}

struct Tiff<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl Tiff<'_> {
    fn number(&self, at: usize, size: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(size)?)?;
        let join = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        Some(if self.big_endian {
            bytes.iter().fold(0, join)
        } else {
            bytes.iter().rev().fold(0, join)
        })
    }
}

fn orientation_tag(exif: &[u8]) -> Option<u32> {
    let bytes = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let big_endian = bytes.starts_with(b"MM");
    if !big_endian && !bytes.starts_with(b"II") {
        return None;
    }
    let tiff = Tiff { bytes, big_endian };
    if tiff.number(2, 2)? != 42 {
        return None;
    }
    let directory = tiff.number(4, 4)? as usize;
    for index in 0..tiff.number(directory, 2)? as usize {
        let entry = directory.checked_add(2 + 12 * index)?;
        if tiff.number(entry, 2)? == ORIENTATION_TAG {
            return match tiff.number(entry + 2, 2)? {
                1 => tiff.number(entry + 8, 1), // BYTE
                3 => tiff.number(entry + 8, 2), // SHORT
                4 => tiff.number(entry + 8, 4), // LONG
                _ => None,
            };
        }
    }
    None
}

impl Decoded {
    /// Width and height after the orientation is applied.
    pub fn upright_size(&self) -> (u32, u32) {
        if self.orientation.swaps_sides() {
            (self.height, self.width)
        } else {
            (self.width, self.height)
        }
    }

    /// Writes the upright image. `out` holds 3 bytes per pixel.
    pub fn write_upright(&self, out: &mut [u8]) {
        if self.orientation == UPRIGHT {
            out.copy_from_slice(&self.rgb);
            return;
        }
        let (width, height) = (self.width as usize, self.height as usize);
        let out_width = self.upright_size().0 as usize;
        for (index, pixel) in out.chunks_exact_mut(3).enumerate() {
            let (x, y) = (index % out_width, index / out_width);
            let (from_x, from_y) = match self.orientation.0 {
                2 => (width - 1 - x, y),
                3 => (width - 1 - x, height - 1 - y),
                4 => (x, height - 1 - y),
                5 => (y, x),
                6 => (y, height - 1 - x),
                7 => (width - 1 - y, height - 1 - x),
                _ => (width - 1 - y, x),
            };
            let from = 3 * (from_y * width + from_x);
            pixel.copy_from_slice(&self.rgb[from..from + 3]);
        }
    }
}

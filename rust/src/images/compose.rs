//! Composes pixels on white with the rounding of Pillow's `Image.paste` with a mask.

fn divide_by_255(value: u32) -> u8 {
    let rounded = value + 128;
    (((rounded >> 8) + rounded) >> 8) as u8
}

/// One channel of a pixel with the given opacity, on white.
pub fn on_white(channel: u8, alpha: u8) -> u8 {
    divide_by_255(255 * u32::from(255 - alpha) + u32::from(channel) * u32::from(alpha))
}

pub fn rgba_on_white(rgba: &[u8; 4]) -> [u8; 3] {
    [0, 1, 2].map(|channel| on_white(rgba[channel], rgba[3]))
}

/// Turns RGBA into RGB in place, so that no second buffer is needed.
pub fn flatten_rgba(mut pixels: Vec<u8>) -> Vec<u8> {
    let count = pixels.len() / 4;
    for index in 0..count {
        let [red, green, blue, alpha] = pixels[4 * index..][..4] else {
            unreachable!("a slice of four")
        };
        let rgb = rgba_on_white(&[red, green, blue, alpha]);
        pixels[3 * index..][..3].copy_from_slice(&rgb);
    }
    pixels.truncate(3 * count);
    pixels
}

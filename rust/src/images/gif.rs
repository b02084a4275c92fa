//! GIF: the only frame, on a canvas of the size of the screen.

use std::io::Cursor;

use ::gif::{ColorOutput, DecodeOptions, Frame};

use super::compose::on_white;
use super::{Decoded, Limits, Orientation, animated, corrupt, zeroed};
use crate::border::Failure;

pub fn decode(data: &[u8], limits: Limits) -> Result<Decoded, Failure> {
    let failed = |error: ::gif::DecodingError| corrupt("GIF", error);
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    let mut decoder = options.read_info(Cursor::new(data)).map_err(failed)?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    limits.check(screen.0, screen.1)?;
    let frame = decoder
        .next_frame_info()
        .map_err(failed)?
        .ok_or_else(|| corrupt("GIF", "it has no frame"))?
        .clone();
    // As Pillow: the frame may be larger than the screen.
    let width = screen.0.max(u32::from(frame.left) + u32::from(frame.width));
    let height = screen.1.max(u32::from(frame.top) + u32::from(frame.height));
    limits.check(width, height)?;
    limits.check(u32::from(frame.width), u32::from(frame.height))?;

    let mut indices = zeroed(frame.width.into(), frame.height.into(), 1);
    decoder.read_into_buffer(&mut indices).map_err(failed)?;
    let colors = colors(&frame, decoder.palette().map_err(failed)?);
    if matches!(decoder.next_frame_info(), Ok(Some(_))) {
        return Err(animated("GIF"));
    }
    Ok(Decoded {
        width,
        height,
        rgb: paint(&frame, &indices, &colors, width, height),
        orientation: Orientation::of_exif(None),
    })
}

/// Black for indices that the palette does not have, white for the transparent one.
fn colors(frame: &Frame, palette: &[u8]) -> [[u8; 3]; 256] {
    let mut colors = [[0; 3]; 256];
    for (color, entry) in colors.iter_mut().zip(palette.chunks_exact(3)) {
        color.copy_from_slice(entry);
    }
    if let Some(transparent) = frame.transparent {
        colors[usize::from(transparent)] = [on_white(0, 0); 3];
    }
    colors
}

/// The canvas around the frame has the transparent color, or the first one if there is none.
fn paint(
    frame: &Frame,
    indices: &[u8],
    colors: &[[u8; 3]; 256],
    width: u32,
    height: u32,
) -> Vec<u8> {
    let mut rgb = zeroed(width, height, 3);
    let around = colors[usize::from(frame.transparent.unwrap_or(0))];
    if (width, height) != (frame.width.into(), frame.height.into()) {
        for pixel in rgb.chunks_exact_mut(3) {
            pixel.copy_from_slice(&around);
        }
    }
    let frame_rows = indices.chunks_exact(frame.width.into());
    let canvas_rows = rgb.chunks_exact_mut(3 * width as usize);
    for (from, to) in frame_rows.zip(canvas_rows.skip(frame.top.into())) {
        let to = to[3 * usize::from(frame.left)..].chunks_exact_mut(3);
        for (index, pixel) in from.iter().zip(to) {
            pixel.copy_from_slice(&colors[usize::from(*index)]);
        }
    }
    rgb
}

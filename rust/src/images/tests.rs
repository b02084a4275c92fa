//! The C++ and Python tests decode files of every kind; these are the parts that need no files.

use super::compose::{flatten_rgba, on_white};
use super::{Decoded, Limits, Orientation, decode};

const LIMITS: Limits = Limits {
    pixels: 1000,
    side: 100,
};

fn png(width: u32, height: u32, color: ::png::ColorType, data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    file
}

fn message(data: &[u8]) -> String {
    decode(data, LIMITS).unwrap_err().message
}

#[test]
fn png_pixels_are_decoded() {
    let file = png(2, 1, ::png::ColorType::Rgb, &[1, 2, 3, 4, 5, 6]);
    let image = decode(&file, LIMITS).unwrap();
    assert_eq!((image.width, image.height), (2, 1));
    assert_eq!(image.rgb, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn gif_pixels_are_decoded() {
    let mut file = Vec::new();
    let mut encoder = ::gif::Encoder::new(&mut file, 3, 2, &[9, 8, 7, 1, 2, 3]).unwrap();
    let mut frame = ::gif::Frame::from_indexed_pixels(2, 1, vec![1, 0], None);
    (frame.left, frame.top) = (1, 1);
    encoder.write_frame(&frame).unwrap();
    drop(encoder);
    let image = decode(&file, LIMITS).unwrap();
    assert_eq!((image.width, image.height), (3, 2));
    let (first, second) = ([9, 8, 7], [1, 2, 3]);
    assert_eq!(
        image.rgb,
        [first, first, first, first, second, first].concat()
    );
}

#[test]
fn lossless_webp_pixels_are_decoded() {
    let mut file = Vec::new();
    let encoder = image_webp::WebPEncoder::new(&mut file);
    let pixels = [10, 20, 30, 0, 40, 50, 60, 255];
    encoder
        .encode(&pixels, 2, 1, image_webp::ColorType::Rgba8)
        .unwrap();
    assert_eq!(
        decode(&file, LIMITS).unwrap().rgb,
        [255, 255, 255, 40, 50, 60]
    );
}

#[test]
fn sizes_are_refused_before_pixels_are_read() {
    let cut = |width, height| {
        let data = vec![0; (width * height) as usize];
        let mut file = png(width, height, ::png::ColorType::Grayscale, &data);
        file.truncate(50); // the header and nothing of the pixels
        message(&file)
    };
    assert!(cut(101, 1).contains("a side may have at most 100"));
    assert!(cut(50, 30).contains("an image may have at most 1000"));
    assert!(cut(20, 30).contains("corrupt"));
}

#[test]
fn other_data_is_refused() {
    assert!(message(b"").contains("not a PNG, JPEG, WebP or GIF"));
    assert!(message(b"BM").contains("not a PNG, JPEG, WebP or GIF"));
}

#[test]
fn transparency_is_composed_on_white() {
    assert_eq!(on_white(7, 255), 7);
    assert_eq!(on_white(7, 0), 255);
    assert_eq!(on_white(0, 128), 127);
    assert_eq!(
        flatten_rgba(vec![1, 2, 3, 255, 4, 5, 6, 0]),
        [1, 2, 3, 255, 255, 255]
    );
}

fn exif(big_endian: bool, kind: u16, value: u32) -> Vec<u8> {
    let short = |v: u16| {
        if big_endian {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let long = |v: u32| {
        if big_endian {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let start = if big_endian { b"MM" } else { b"II" };
    let value = match kind {
        3 => [short(value as u16), [0; 2]].concat(),
        _ => long(value).to_vec(),
    };
    [
        start,
        &short(42)[..],
        &long(8),
        &short(2),
        &[0; 12],
        &short(0x0112),
        &short(kind),
        &long(1),
        &value,
    ]
    .concat()
}

fn turned(orientation: Orientation) -> (u32, u32, Vec<u8>) {
    let image = Decoded {
        width: 3,
        height: 2,
        rgb: (0..6).flat_map(|pixel| [pixel; 3]).collect(),
        orientation,
    };
    let mut out = vec![0; 18];
    image.write_upright(&mut out);
    let (width, height) = image.upright_size();
    (width, height, out.into_iter().step_by(3).collect())
}

#[test]
fn every_orientation_is_turned_upright() {
    let expected: [(u32, u32, [u8; 6]); 8] = [
        (3, 2, [0, 1, 2, 3, 4, 5]),
        (3, 2, [2, 1, 0, 5, 4, 3]),
        (3, 2, [5, 4, 3, 2, 1, 0]),
        (3, 2, [3, 4, 5, 0, 1, 2]),
        (2, 3, [0, 3, 1, 4, 2, 5]),
        (2, 3, [3, 0, 4, 1, 5, 2]),
        (2, 3, [5, 2, 4, 1, 3, 0]),
        (2, 3, [2, 5, 1, 4, 0, 3]),
    ];
    for (value, (width, height, pixels)) in (1..).zip(expected) {
        for big_endian in [false, true] {
            for kind in [3, 4] {
                let data = exif(big_endian, kind, value);
                let prefixed = [&b"Exif\0\0"[..], &data].concat();
                for data in [data, prefixed] {
                    let orientation = Orientation::of_exif(Some(&data));
                    assert_eq!(turned(orientation), (width, height, pixels.to_vec()));
                }
            }
        }
    }
}

#[test]
fn damaged_exif_is_upright() {
    let upright = Orientation::of_exif(None);
    let good = exif(false, 3, 6);
    assert_ne!(Orientation::of_exif(Some(&good)), upright);
    for size in 0..good.len() - 3 {
        assert_eq!(Orientation::of_exif(Some(&good[..size])), upright);
    }
    for value in [0, 9, 65535] {
        assert_eq!(Orientation::of_exif(Some(&exif(true, 3, value))), upright);
    }
    let far = [&b"II\x2a\0\xff\xff\xff\xff"[..], &[0; 20]].concat();
    assert_eq!(Orientation::of_exif(Some(&far)), upright);
}

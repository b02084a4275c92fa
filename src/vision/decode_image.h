// decode_image.h - decodes the bytes of an image file. Any thread. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vision/image.h"

namespace octavo {

// While it runs, decode_image() needs up to so much memory (measured: PNG and baseline JPEG 6,
// progressive JPEG 9, lossy WebP 14).
inline constexpr uint64_t kDecodingBytesPerPixel = 15;

// Decodes a PNG, JPEG, WebP or GIF file, recognised by its first bytes, as Pillow's convert("RGB")
// does, except that transparency is composed on white. The EXIF orientation is applied. Throws
// ImageError for other formats, animations, damaged files, and sizes above `limits`, which are
// checked before pixels are allocated.
Image decode_image(std::span<const std::byte> file, const ImageLimits& limits = {});

}  // namespace octavo

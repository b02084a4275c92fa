/* octavo_images.h - decodes PNG, JPEG, WebP and GIF images, implemented in Rust without unsafe code.
 *
 * The rules of octavo_rust.h apply. Any thread. */
#pragma once

#include <octavo_rust.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_image_limits {
  uint64_t pixels; /* width * height; 64 million or less, so that sizes in bytes fit */
  uint32_t side;   /* width and height */
} octavo_image_limits;

/* `reserve` is called once, after the image was decoded, and returns width * height * 3 writable bytes,
 * or null if there is no memory for them. Must not throw. */
typedef struct octavo_image_target {
  uint8_t* (*reserve)(void* context, uint32_t width, uint32_t height);
  void* context;
} octavo_image_target;

/* Writes the upright image as row-major RGB, with transparency composed on white. A size above
 * `limits` is refused before pixels are allocated, and so is an animation. OCTAVO_RUST_BUG: a decoder
 * panicked, so the image is corrupt. */
octavo_rust_status octavo_image_decode(const uint8_t* data, size_t size, octavo_image_limits limits,
                                       octavo_image_target target, octavo_text* error);

#ifdef __cplusplus
}
#endif

#include "vision/decode_image.h"

#include <octavo_images.h>

#include <new>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/rust_border.h"

namespace octavo {
namespace {

uint8_t* reserve_pixels(void* context, uint32_t width, uint32_t height) {
  auto& image = *static_cast<Image*>(context);
  try {
    image.rgb.resize(size_t{width} * height * 3);
  } catch (const std::exception&) {
    return nullptr;
  }
  image.width = static_cast<int>(width);
  image.height = static_cast<int>(height);
  return image.rgb.data();
}

}  // namespace

Image decode_image(std::span<const std::byte> file, const ImageLimits& limits) {
  OCTAVO_CHECK(limits.side >= 1 && limits.pixels <= ImageLimits{}.pixels);
  Image image;
  RustText error;
  const octavo_rust_status status =
      octavo_image_decode(reinterpret_cast<const uint8_t*>(file.data()), file.size(),
                          {.pixels = limits.pixels, .side = static_cast<uint32_t>(limits.side)},
                          {.reserve = reserve_pixels, .context = &image}, error.out());
  if (status == OCTAVO_RUST_OK) return image;
  // A decoder's panic is about its own code, so its text does not help the caller.
  if (status == OCTAVO_RUST_BUG) throw ImageError("the image is corrupt");
  throw ImageError(std::string(error.view()));
}

}  // namespace octavo

#include "cli/image_file.h"

#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "vision/decode_image.h"

namespace octavo {

api::ImageSource read_image_file(const std::string& path) {
  constexpr size_t kMostBytes = 64u << 20;
  if (path.starts_with("https://") || path.starts_with("http://"))
    throw RequestError(400, path, "is a URL; download the image and give the file");
  if (!std::filesystem::is_regular_file(path))
    throw RequestError(400, path, "is not a file; give a PNG, JPEG, WebP or GIF file");
  try {
    auto file = std::make_shared<const std::string>(read_text_file(path, kMostBytes));
    decode_image(std::as_bytes(std::span(*file)));
    return {.field = path, .file = std::move(file)};
  } catch (const ImageError& error) {
    throw RequestError(400, path, error.what());
  } catch (const SetupError& error) {
    throw RequestError(400, path, error.what());
  }
}

}  // namespace octavo

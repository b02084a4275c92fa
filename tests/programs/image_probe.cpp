// image_probe - the vision layer for tests. Reads one JSON order per line from stdin and prints one
// JSON result per order:
//   {"image": FILE, "pixels": OUT}                           decodes; OUT gets the RGB bytes
//   {"image": FILE, "model": FOLDER, "out": OUT,             also resizes; OUT gets the patches as
//    "max_tokens": N}                                        float32; without max_tokens: 1 << 20
//   {"size": [W, H], "model": FOLDER, "max_tokens": N}       only the size that the model would see
//   {"peak": true}                                           the process's peak memory in bytes
// The model's folder has config.json, and preprocessor_config.json or processor_config.json.
#ifndef __linux__
#include <sys/resource.h>
#endif

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "vision/decode_image.h"
#include "vision/fit_image.h"
#include "vision/image_patches.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

template <typename T>
void write_values(const std::string& path, const std::vector<T>& values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!out.flush()) throw SetupError(path + " cannot be written");
}

Json read_json(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  return Json::parse(read_text_file(path));
}

ImageProcessor read_processor(const std::filesystem::path& model) {
  Json preprocessor = read_json(model / "preprocessor_config.json");
  if (preprocessor.is_null()) preprocessor = read_json(model / "processor_config.json");
  return read_image_processor(read_json(model / "config.json"), preprocessor);
}

// The usage that wait4 reports begins with the memory of the process that forked this one, so it
// cannot be used on Linux; on macOS it can.
uint64_t peak_bytes() {
#ifdef __linux__
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  throw SetupError("/proc/self/status has no VmHWM");
#else
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss);
#endif
}

Json run(const Json& order) {
  if (order.contains("peak")) return {{"bytes", peak_bytes()}};
  Json result = Json::object();
  Image image;
  if (order.contains("image")) {
    const std::string file = read_text_file(order.at("image").get<std::string>());
    image = decode_image(std::as_bytes(std::span(file)));
    result = {{"width", image.width}, {"height", image.height}};
    if (order.contains("pixels")) write_values(order.at("pixels"), image.rgb);
  } else {
    image.width = order.at("size").at(0);
    image.height = order.at("size").at(1);
  }
  if (!order.contains("model")) return result;

  const ImageProcessor processor = read_processor(order.at("model").get<std::string>());
  const ImageSize size =
      fit_image(processor, image.width, image.height, order.value("max_tokens", 1 << 20));
  result["resized"] = {size.width, size.height};
  result["grid"] = {size.grid_w, size.grid_h};
  result["tokens"] = size.tokens;
  if (image.rgb.empty()) return result;

  const ImagePatches patches =
      make_patches(processor, resize(image, size.width, size.height, processor.filter));
  OCTAVO_CHECK(patches.tokens == size.tokens && patches.grid_w == size.grid_w);
  result["numbers"] = processor.patch_numbers();
  write_values(order.at("out"), patches.values);
  return result;
}

int run_orders() {
  for (std::string line; std::getline(std::cin, line);) {
    Json result;
    try {
      result = run(Json::parse(line));
    } catch (const ImageError& error) {
      result = {{"error", error.what()}, {"status", 400}};
    } catch (const std::exception& error) {
      result = {{"error", error.what()}};
    }
    std::cout << result.dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace octavo

int main() { return octavo::run_orders(); }

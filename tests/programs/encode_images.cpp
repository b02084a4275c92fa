// encode_images - a checkpoint's vision tower alone, for tests. Reads one JSON order per line from stdin
// and prints one JSON result per line:
//   {"model": FOLDER, "dtype": NAME, "images": [FILES], "out": FILE,
//    "path": "native", "reference" or "metal" (simulated), "rows_at_once": N, "threads": N (0: all),
//    "max_tokens": N, "interleave": true: a piece of each image in turn, instead of one image after
//    the other, "patches": FILE that gets the patches of all images as float32}
// out: the rows of all images as float32, [tokens, hidden] each.
// Result: {"hidden": N, "numbers": N of a patch, "images": [{"grid": [W, H], "tokens": N, "pieces": N,
//   "planned": bytes of VisionPlan::pass_bytes, "peak": bytes that MLX's memory grew by, "pages": bytes
//   of device memory that MLX does not count}], "launches": {...}}, or {"error": TEXT}
#include <mlx/memory.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "kernels/runtime/fault.h"
#include "models/model_description.h"
#include "models/vision/vision_tower.h"
#include "support/simulated_device.h"
#include "vision/decode_image.h"
#include "vision/fit_image.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

struct LoadedVision {
  VisionPlan plan;
  DType dtype;
  std::unique_ptr<VisionTower> tower;
};

LoadedVision load_vision(const Json& order) {
  const Checkpoint checkpoint = Checkpoint::open(order.at("model").get<std::string>());
  const DType dtype = parse_dtype(order.value("dtype", "float32"), "dtype");
  ModelDescription model = describe_model(checkpoint, dtype);
  if (!model.vision) throw std::runtime_error(model.vision_absent);
  WeightSource source(checkpoint, nullptr);
  LoadedVision loaded{*std::move(model.vision), dtype, nullptr};
  loaded.tower = load_vision_tower(loaded.plan, dtype, source);
  if (source.loaded_bytes() != loaded.plan.weights_bytes)
    throw std::runtime_error("the plan has another number of bytes of weights");
  return loaded;
}

class Encoder {
 public:
  Encoder(const Json& order, const LoadedVision& vision)
      : vision_(vision),
        path_(order.value("path", "native") == "reference" ? KernelPath::kReference
                                                           : KernelPath::kNative),
        rows_at_once_(order.value("rows_at_once", 2048)),
        max_tokens_(order.value("max_tokens", 1 << 20)) {}

  Json run(const Json& order) {
    for (const auto& file : order.at("images")) patches_.push_back(read(file.get<std::string>()));
    if (order.contains("patches")) write_patches(order["patches"].get<std::string>());
    results_.assign(patches_.size(), std::nullopt);
    facts_.assign(patches_.size(), Json::object());
    order.value("interleave", false) ? run_in_turn() : run_one_by_one();
    write_rows(order.at("out").get<std::string>());
    return {{"hidden", vision_.plan.row_width()},
            {"numbers", vision_.plan.processor.patch_numbers()},
            {"images", facts_}};
  }

 private:
  ImagePatches read(const std::string& path) const {
    const ImageProcessor& processor = vision_.plan.processor;
    const std::string file = read_text_file(path);
    const Image image = decode_image(std::as_bytes(std::span(file)));
    const ImageSize size = fit_image(processor, image.width, image.height, max_tokens_);
    return make_patches(processor, resize(image, size.width, size.height, processor.filter));
  }

  int pieces_of(const ImagePatches& patches) const {
    return vision_.plan.pieces(patches.grid_h, patches.grid_w, rows_at_once_);
  }
  std::unique_ptr<VisionPass> begin(const ImagePatches& patches) const {
    return vision_.tower->begin(patches, rows_at_once_, path_);
  }

  void run_one_by_one() {
    for (size_t i = 0; i < patches_.size(); ++i) {
      mx::clear_cache();
      mx::reset_peak_memory();
      const size_t before = mx::get_active_memory();
      const auto pass = begin(patches_[i]);
      for (int piece = 0; piece < pieces_of(patches_[i]); ++piece) mx::eval(pass->queue_piece());
      facts_[i]["peak"] = mx::get_peak_memory() - std::min(before, mx::get_peak_memory());
      take_rows(i, *pass);
    }
  }

  void run_in_turn() {
    std::vector<std::unique_ptr<VisionPass>> passes;
    int most = 0;
    for (const ImagePatches& patches : patches_) {
      passes.push_back(begin(patches));
      most = std::max(most, pieces_of(patches));
    }
    for (int piece = 0; piece < most; ++piece) {
      for (size_t i = 0; i < passes.size(); ++i) {
        if (piece < pieces_of(patches_[i])) mx::async_eval(passes[i]->queue_piece());
      }
    }
    for (size_t i = 0; i < passes.size(); ++i) take_rows(i, *passes[i]);
  }

  void take_rows(size_t i, const VisionPass& pass) {
    mx::array rows = pass.rows();
    const ImagePatches& patches = patches_[i];
    OCTAVO_CHECK((rows.shape() == mx::Shape{patches.tokens, vision_.plan.row_width()}));
    OCTAVO_CHECK(rows.dtype() == mlx_dtype(vision_.dtype));
    rows = mx::contiguous(mx::astype(rows, mx::float32));
    rows.eval();
    results_[i] = rows;
    facts_[i]["grid"] = {patches.grid_w, patches.grid_h};
    facts_[i]["tokens"] = patches.tokens;
    facts_[i]["pieces"] = pieces_of(patches);
    facts_[i]["planned"] =
        vision_.plan.pass_bytes(patches.grid_h, patches.grid_w, rows_at_once_, vision_.dtype);
    const auto width = static_cast<uint64_t>(2 * vision_.plan.shape.kv_width());
    facts_[i]["pages"] = static_cast<uint64_t>(patches.grid_h) *
                         static_cast<uint64_t>(patches.grid_w) * width * size_of(vision_.dtype);
  }

  void write_patches(const std::string& path) const {
    std::ofstream out(path, std::ios::binary);
    for (const ImagePatches& patches : patches_) {
      out.write(reinterpret_cast<const char*>(patches.values.data()),
                static_cast<std::streamsize>(patches.values.size() * sizeof(float)));
    }
    if (!out.flush()) throw std::runtime_error(path + " cannot be written");
  }

  void write_rows(const std::string& path) const {
    std::ofstream out(path, std::ios::binary);
    for (const auto& rows : results_) {
      out.write(reinterpret_cast<const char*>(rows->data<float>()),
                static_cast<std::streamsize>(rows->nbytes()));
    }
    if (!out.flush()) throw std::runtime_error(path + " cannot be written");
  }

  const LoadedVision& vision_;
  KernelPath path_;
  int rows_at_once_;
  int max_tokens_;
  std::vector<ImagePatches> patches_;
  std::vector<std::optional<mx::array>> results_;
  std::vector<Json> facts_;
};

// The launches since `before`.
Json launches_since(const std::map<std::string, int64_t>& before) {
  Json counts = Json::object();
  for (const auto& [kernel, count] : launch_counts()) {
    const auto earlier = before.find(kernel);
    const int64_t launches = count - (earlier == before.end() ? 0 : earlier->second);
    if (launches > 0) counts[kernel] = launches;
  }
  return counts;
}

Json encode(const Json& order) {
  const LoadedVision vision = load_vision(order);
  const std::map<std::string, int64_t> before = launch_counts();
  const int threads = order.value("threads", 0);
  compute_pool().limit_threads(threads > 0 ? threads : 1 << 20);
  SimulatedDevice device(order.value("path", "native") == "metal");
  Encoder encoder(order, vision);
  Json result = encoder.run(order);
  check_kernels();
  device.finish();
  result["launches"] = launches_since(before);
  return result;
}

}  // namespace
}  // namespace octavo

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    octavo::Json answer;
    try {
      answer = octavo::encode(octavo::Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer << std::endl;
  }
}

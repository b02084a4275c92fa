#include "engine/image_encoder.h"

#include <utility>

#include "base/error.h"
#include "vision/image_patches.h"
#include "vision/image_pixels.h"

namespace octavo {

ImageEncoder::ImageEncoder(VisionPlan plan, const VisionTower& tower, int rows_at_once,
                           KernelPath path)
    : plan_(std::move(plan)), tower_(tower), rows_at_once_(rows_at_once), path_(path) {}

ImageEncoder::~ImageEncoder() = default;

ImageEncoder::Encoding ImageEncoder::begin(const ImagePixels& pixels) const {
  const ImagePatches patches = make_patches(plan_.processor, pixels.resized);
  OCTAVO_CHECK(patches.grid_h == pixels.grid_h && patches.grid_w == pixels.grid_w);
  return {.pass = tower_.begin(patches, rows_at_once_, path_),
          .pieces_left = plan_.pieces(patches.grid_h, patches.grid_w, rows_at_once_)};
}

std::vector<mx::array> ImageEncoder::queue(const ImageWork& work) {
  for (const ImageId id : work.drops) {
    encodings_.erase(id);
    rows_.erase(id);
  }
  if (work.encodes == 0) return {};
  if (work.pixels != nullptr) {
    const bool is_new = encodings_.emplace(work.encodes, begin(*work.pixels)).second;
    OCTAVO_CHECK(is_new && !rows_.contains(work.encodes));
  }
  const auto found = encodings_.find(work.encodes);
  OCTAVO_CHECK(found != encodings_.end());
  Encoding& encoding = found->second;
  std::vector<mx::array> results = encoding.pass->queue_piece();
  if (--encoding.pieces_left > 0) return results;
  mx::array rows = encoding.pass->rows();
  OCTAVO_CHECK(rows.ndim() == 2 && rows.shape(1) == plan_.row_width());
  results.push_back(rows);
  rows_.emplace(work.encodes, std::move(rows));
  encodings_.erase(found);
  return results;
}

std::vector<PlacedRows> ImageEncoder::rows_of(std::span<const ImageRows> parts) const {
  std::vector<PlacedRows> placed;
  for (const ImageRows& part : parts) {
    const auto found = rows_.find(part.image);
    OCTAVO_CHECK(found != rows_.end());
    const mx::array& rows = found->second;
    const int end = part.first + part.count;
    OCTAVO_CHECK(part.first >= 0 && part.count > 0 && end <= rows.shape(0));
    placed.push_back({part.row, part.count == rows.shape(0)
                                    ? rows
                                    : mx::slice(rows, {part.first, 0}, {end, rows.shape(1)})});
  }
  return placed;
}

void ImageEncoder::clear() {
  encodings_.clear();
  rows_.clear();
}

}  // namespace octavo

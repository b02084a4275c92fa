// image_encoder.h - encodes images in pieces, one per step, and keeps their rows. Engine thread only.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/decoder_model.h"
#include "models/vision/vision_tower.h"
#include "scheduler/image_work.h"

namespace octavo {

class ImageEncoder {
 public:
  // `tower` must outlive the encoder. `rows_at_once`: see VisionTower::begin().
  ImageEncoder(VisionPlan plan, const VisionTower& tower, int rows_at_once,
               KernelPath path = KernelPath::kNative);
  ~ImageEncoder();

  // Drops images, then queues a piece of an encoding. Returns what to evaluate; empty without one. Ids
  // that are not known are not dropped: after a failed step, they may name what clear() has dropped.
  std::vector<mx::array> queue(const ImageWork& work);
  // The rows that the parts of a step name. The last piece of their images has been queued.
  std::vector<PlacedRows> rows_of(std::span<const ImageRows> parts) const;
  // Drops all images: after a failed step, it is not known which of them are complete.
  void clear();

  int images() const { return static_cast<int>(rows_.size()); }  // that are complete

 private:
  struct Encoding {
    std::unique_ptr<VisionPass> pass;
    int pieces_left;
  };

  Encoding begin(const ImagePixels& pixels) const;

  VisionPlan plan_;
  const VisionTower& tower_;
  int rows_at_once_;
  KernelPath path_;
  std::unordered_map<ImageId, Encoding> encodings_;  // with pieces left
  std::unordered_map<ImageId, mx::array> rows_;      // [tokens, VisionPlan::row_width()]
};

}  // namespace octavo

#include "vision/image_patches.h"

#include "base/error.h"

namespace octavo {
namespace {

// Writes one patch to `out` and returns the place after it.
class PatchWriter {
 public:
  PatchWriter(const ImageProcessor& processor, const Image& image)
      : processor_(processor), image_(image) {}

  float* write(int patch_row, int patch_column, float* out) const {
    const size_t first = (static_cast<size_t>(patch_row) * image_.width + patch_column) *
                         processor_.patch * kChannels;
    const uint8_t* corner = image_.rgb.data() + first;
    if (processor_.family == ImageFamily::kGemma4) return write_pixels(corner, out);
    for (int channel = 0; channel < kChannels; ++channel) {
      for (int frame = 0; frame < processor_.frames; ++frame) {
        out = write_channel(corner + channel, processor_.levels[channel], out);
      }
    }
    return out;
  }

 private:
  static constexpr int kChannels = 3;

  const uint8_t* row(const uint8_t* corner, int y) const {
    return corner + static_cast<size_t>(y) * image_.width * kChannels;
  }

  float* write_pixels(const uint8_t* corner, float* out) const {
    for (int y = 0; y < processor_.patch; ++y) {
      const uint8_t* bytes = row(corner, y);
      for (int x = 0; x < processor_.patch; ++x, bytes += kChannels) {
        for (int channel = 0; channel < kChannels; ++channel) {
          *out++ = processor_.levels[channel][bytes[channel]];
        }
      }
    }
    return out;
  }

  float* write_channel(const uint8_t* corner, const std::array<float, 256>& levels,
                       float* out) const {
    for (int y = 0; y < processor_.patch; ++y) {
      const uint8_t* bytes = row(corner, y);
      for (int x = 0; x < processor_.patch; ++x) *out++ = levels[bytes[x * kChannels]];
    }
    return out;
  }

  const ImageProcessor& processor_;
  const Image& image_;
};

}  // namespace

ImagePatches make_patches(const ImageProcessor& processor, const Image& resized) {
  const int side = processor.token_side();
  OCTAVO_CHECK(resized.width >= side && resized.width % side == 0);
  OCTAVO_CHECK(resized.height >= side && resized.height % side == 0);
  ImagePatches patches;
  patches.grid_h = resized.height / processor.patch;
  patches.grid_w = resized.width / processor.patch;
  patches.tokens = (resized.height / side) * (resized.width / side);
  patches.values.resize(static_cast<size_t>(patches.grid_h) * patches.grid_w *
                        processor.patch_numbers());

  const PatchWriter writer(processor, resized);
  const int block = processor.family == ImageFamily::kQwen ? processor.merge : 1;
  float* out = patches.values.data();
  for (int top = 0; top < patches.grid_h; top += block) {
    for (int left = 0; left < patches.grid_w; left += block) {
      for (int i = 0; i < block * block; ++i) {
        out = writer.write(top + i / block, left + i % block, out);
      }
    }
  }
  return patches;
}

}  // namespace octavo

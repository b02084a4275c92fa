#include "kernels/types/weight_format.h"

#include <array>

#include "base/error.h"

namespace octavo {
namespace {

struct FormatInfo {
  std::string_view name;
  BlockSize block;  // {0, 0} if the format has no blocks
};

// In the order of WeightFormat.
constexpr std::array<FormatInfo, 21> kFormats = {{
    {"dense", {0, 0}},      {"affine", {0, 0}},       {"mxfp4", {0, 0}},    {"q4_0", {32, 18}},
    {"q4_1", {32, 20}},     {"q5_0", {32, 22}},       {"q5_1", {32, 24}},   {"q8_0", {32, 34}},
    {"q4_k", {256, 144}},   {"q5_k", {256, 176}},     {"q6_k", {256, 210}}, {"q2_k", {256, 84}},
    {"q3_k", {256, 110}},   {"mxfp4_gguf", {32, 17}}, {"iq4_nl", {32, 18}}, {"iq4_xs", {256, 136}},
    {"iq3_s", {256, 110}},  {"iq3_xxs", {256, 98}},   {"iq2_s", {256, 82}}, {"iq2_xs", {256, 74}},
    {"iq2_xxs", {256, 66}},
}};
static_assert(kFormats.size() == static_cast<size_t>(WeightFormat::kIQ2_XXS) + 1);

}  // namespace

std::string_view name_of(WeightFormat format) {
  return kFormats.at(static_cast<size_t>(format)).name;
}

BlockSize gguf_block(WeightFormat format) { return kFormats.at(static_cast<size_t>(format)).block; }

int64_t WeightView::row_bytes() const {
  switch (format) {
    case WeightFormat::kDense:
      return cols * static_cast<int64_t>(size_of(dtype));
    case WeightFormat::kAffine:
      return cols * bits / 8;
    case WeightFormat::kMxfp4:
      return cols / 2;
    default: {
      const BlockSize block = gguf_block(format);
      OCTAVO_CHECK(block.elements > 0);
      return cols / block.elements * block.bytes;
    }
  }
}

}  // namespace octavo

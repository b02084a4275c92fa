#include "kernels/weight_format.h"

#include "base/error.h"

namespace octavo {

std::string_view name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kDense:
      return "dense";
    case WeightFormat::kAffine:
      return "affine";
    case WeightFormat::kMxfp4:
      return "mxfp4";
    case WeightFormat::kQ4_0:
      return "q4_0";
    case WeightFormat::kQ4_1:
      return "q4_1";
    case WeightFormat::kQ5_0:
      return "q5_0";
    case WeightFormat::kQ5_1:
      return "q5_1";
    case WeightFormat::kQ8_0:
      return "q8_0";
    case WeightFormat::kQ4_K:
      return "q4_k";
    case WeightFormat::kQ5_K:
      return "q5_k";
    case WeightFormat::kQ6_K:
      return "q6_k";
  }
  return "?";
}

BlockSize gguf_block(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ4_0:
      return {32, 18};
    case WeightFormat::kQ4_1:
      return {32, 20};
    case WeightFormat::kQ5_0:
      return {32, 22};
    case WeightFormat::kQ5_1:
      return {32, 24};
    case WeightFormat::kQ8_0:
      return {32, 34};
    case WeightFormat::kQ4_K:
      return {256, 144};
    case WeightFormat::kQ5_K:
      return {256, 176};
    case WeightFormat::kQ6_K:
      return {256, 210};
    default:
      return {0, 0};
  }
}

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

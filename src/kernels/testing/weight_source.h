// weight_source.h - for tests: weight matrices of every format as a file stores them.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "kernels/runtime/mlx.h"
#include "kernels/testing/quantised_formats.h"
#include "kernels/testing/support.h"
#include "kernels/types/weight_format.h"

namespace octavo {

// A matrix and its memory. `view` points into the vectors, so a source is moved, never copied.
struct WeightSource {
  WeightSource() = default;
  WeightSource(WeightSource&&) = default;
  WeightSource& operator=(WeightSource&&) = default;

  std::vector<std::byte> data, scales, biases;
  WeightView view;
};

// Where a GGUF block has its codes; the rest are scales.
struct CodeBytes {
  size_t begin;
  size_t end;
};
inline CodeBytes code_bytes(WeightFormat format) {
  const auto bytes = static_cast<size_t>(gguf_block(format).bytes);
  switch (format) {
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ5_0:
    case WeightFormat::kQ8_0:
    case WeightFormat::kIQ4_NL:
      return {2, bytes};
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
      return {4, bytes};
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return {16, bytes};
    case WeightFormat::kQ6_K:
      return {0, 192};
    case WeightFormat::kQ2_K:
      return {16, 80};
    case WeightFormat::kQ3_K:
      return {0, 96};
    case WeightFormat::kMxfp4Gguf:
      return {1, bytes};
    case WeightFormat::kIQ4_XS:
      return {8, bytes};
    // Indices and signs: the same combination everywhere.
    case WeightFormat::kIQ3_S:
      return {2, 106};
    case WeightFormat::kIQ3_XXS:
      return {2, 66};
    case WeightFormat::kIQ2_S:
      return {2, 74};
    case WeightFormat::kIQ2_XS:
      return {2, 66};
    case WeightFormat::kIQ2_XXS:
      return {2, bytes};
    case WeightFormat::kDense:
    case WeightFormat::kAffine:
    case WeightFormat::kMxfp4:
      break;
  }
  return {0, 0};
}

// A source of random bytes: any bytes are valid codes, and scales are made moderate. `view`: shape
// and format; its data is not used.
inline WeightSource random_source(std::mt19937& random, const WeightView& view) {
  WeightSource source;
  source.view = view;
  const auto numbers = [&](size_t count, DType type) {
    const mx::array values = random_array(random, {static_cast<int>(count)}, mlx_dtype(type));
    return std::vector<std::byte>(values.data<std::byte>(),
                                  values.data<std::byte>() + values.nbytes());
  };
  const int64_t group = view.group_size;
  const auto groups = static_cast<size_t>(view.rows * (group > 0 ? view.cols / group : 0));
  source.data.resize(static_cast<size_t>(view.rows * view.row_bytes()));
  for (auto& byte : source.data) byte = static_cast<std::byte>(random());
  if (view.format == WeightFormat::kDense)
    source.data = numbers(static_cast<size_t>(view.rows * view.cols), view.dtype);
  if (view.format == WeightFormat::kAffine) {
    source.scales = numbers(groups, view.dtype);
    source.biases = numbers(groups, view.dtype);
  }
  if (view.format == WeightFormat::kMxfp4) {
    source.scales.resize(groups);
    for (auto& byte : source.scales) byte = static_cast<std::byte>(120 + random() % 16);
  }
  moderate_scales(view.format, source.data);
  source.view.data = source.data.data();
  source.view.scales = source.scales.data();
  source.view.biases = source.biases.data();
  return source;
}

// Sets every code of a quantised source to the largest or to the smallest number before scale and
// bias. Scales stay.
inline void fill_codes(WeightSource& source, bool largest) {
  int byte = largest ? 0xff : 0;
  if (source.view.format == WeightFormat::kMxfp4 || source.view.format == WeightFormat::kMxfp4Gguf)
    byte = largest ? 0x77 : 0xff;                                               // 6 or -6
  if (source.view.format == WeightFormat::kQ8_0) byte = largest ? 0x7f : 0x80;  // 127 or -128
  const CodeBytes codes = code_bytes(source.view.format);
  const auto block = static_cast<size_t>(gguf_block(source.view.format).bytes);
  if (block == 0) std::memset(source.data.data(), byte, source.data.size());
  for (size_t at = 0; block > 0 && at < source.data.size(); at += block)
    std::memset(source.data.data() + at + codes.begin, byte, codes.end - codes.begin);
}

}  // namespace octavo

#include "kernels/weights/packed_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/half.h"
#include "kernels/cpu/convert.h"
#include "kernels/weights/format_codes.h"
#include "kernels/weights/gguf_blocks.h"

namespace octavo {
namespace {

constexpr int64_t kTileCols = 32;
constexpr int64_t kSuperCols = kSuperBlock;

constexpr float kE2M1[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                             -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

int low_bits(int bits) { return bits == 8 ? 8 : bits >= 4 ? 4 : 2; }

template <typename T>
T read(const std::byte* p, int64_t index) {
  T value;
  std::memcpy(&value, p + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void write(std::byte* p, int64_t index, T value) {
  std::memcpy(p + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// One row's scale and bias of one group in the pair kinds, and scale alone in kF16.
void write_small_block(const WeightView& w, int64_t row, int64_t group, int lane, std::byte* out) {
  const auto put = [&](int64_t at, uint16_t bits) { write(out, at * 16 + lane, bits); };
  switch (w.format) {
    case WeightFormat::kQ4_0:
      return put(group, source_blocks<BlockQ4_0>(w, row)[group].scale);
    case WeightFormat::kQ5_0:
      return put(group, source_blocks<BlockQ5_0>(w, row)[group].scale);
    case WeightFormat::kQ8_0:
      return put(group, source_blocks<BlockQ8_0>(w, row)[group].scale);
    case WeightFormat::kQ4_1:
      put(2 * group, source_blocks<BlockQ4_1>(w, row)[group].scale);
      return put(2 * group + 1, source_blocks<BlockQ4_1>(w, row)[group].min);
    default:
      OCTAVO_CHECK(w.format == WeightFormat::kQ5_1);
      put(2 * group, source_blocks<BlockQ5_1>(w, row)[group].scale);
      return put(2 * group + 1, source_blocks<BlockQ5_1>(w, row)[group].min);
  }
}

constexpr int64_t kSuperScaleBytes = 16 * 2 * 2 + 8 * 16 * 2;  // d, dmin; 8 scales and mins
constexpr int64_t kSignedScaleBytes = 16 * 2 + 16 * 16;        // d; 16 scales

void write_super(const WeightView& w, int64_t row, int lane, std::byte* out) {
  for (int64_t b = 0; b < w.cols / kSuperCols; ++b, out += kSuperScaleBytes) {
    const bool five = w.format == WeightFormat::kQ5_K;
    const auto& four_bits = source_blocks<BlockQ4_K>(w, row)[five ? 0 : b];
    const auto& five_bits = source_blocks<BlockQ5_K>(w, row)[five ? b : 0];
    write(out, lane, five ? five_bits.scale : four_bits.scale);
    write(out, 16 + lane, five ? five_bits.min : four_bits.min);
    for (int group = 0; group < 8; ++group) {
      const ScaleAndMin s = scale_and_min(five ? five_bits.scales : four_bits.scales, group);
      write(out + 64, group * 32 + lane, s.scale);
      write(out + 64, group * 32 + 16 + lane, s.min);
    }
  }
}

void write_super_signed(const WeightView& w, int64_t row, int lane, std::byte* out) {
  for (int64_t b = 0; b < w.cols / kSuperCols; ++b, out += kSignedScaleBytes) {
    const BlockQ6_K& block = source_blocks<BlockQ6_K>(w, row)[b];
    write(out, lane, block.scale);
    for (int group = 0; group < 16; ++group)
      write(out + 32, group * 16 + lane, block.scales[group]);
  }
}

void write_scales(const WeightView& w, const PackedLayout& layout, int64_t row, int lane,
                  std::byte* out) {
  const int64_t groups = w.cols / layout.group_size;
  if (layout.scale_kind == ScaleKind::kSuper) return write_super(w, row, lane, out);
  if (layout.scale_kind == ScaleKind::kSuperSigned) return write_super_signed(w, row, lane, out);
  for (int64_t g = 0; g < groups; ++g) {
    if (w.format == WeightFormat::kMxfp4) {
      write(out, g * 16 + lane, read<uint8_t>(w.scales, row * groups + g));
    } else if (w.format != WeightFormat::kAffine) {
      write_small_block(w, row, g, lane, out);
    } else if (w.dtype == DType::kFloat32) {
      write(out, 2 * g * 16 + lane, read<uint32_t>(w.scales, row * groups + g));
      write(out, (2 * g + 1) * 16 + lane, read<uint32_t>(w.biases, row * groups + g));
    } else {
      write(out, 2 * g * 16 + lane, read<uint16_t>(w.scales, row * groups + g));
      write(out, (2 * g + 1) * 16 + lane, read<uint16_t>(w.biases, row * groups + g));
    }
  }
}

// Writes one row's 64 codes to the planes of a unit, which are zero before.
void write_planes(const PackedLayout& layout, const uint8_t* codes, int lane, uint8_t* unit) {
  const int low = low_bits(layout.bits);
  const int high = layout.bits - low;
  if (low == 8) {
    std::memcpy(unit + lane * kUnitCols, codes, kUnitCols);
    return;
  }
  const int mask = (1 << low) - 1;
  uint8_t* row = unit + lane * kUnitCols * low / 8;
  for (int k = 0; k < kUnitCols; ++k) {
    const int field = k / 16, j = k % 16, code = codes[k] & mask;
    if (low == 4) {
      row[2 * j + field / 2] =
          static_cast<uint8_t>(row[2 * j + field / 2] | code << (field % 2 * 4));
    } else {
      row[j] = static_cast<uint8_t>(row[j] | code << (2 * field));
    }
  }
  if (high == 0) return;
  row = unit + layout.low_bytes() + lane * kUnitCols * high / 8;
  for (int k = 0; k < kUnitCols; ++k) {
    const int code = codes[k] >> low;
    if (high == 1) {
      row[k / 8] = static_cast<uint8_t>(row[k / 8] | code << (k % 8));
    } else {
      row[k % 16] = static_cast<uint8_t>(row[k % 16] | code << (2 * (k / 16)));
    }
  }
}

void pack_quantized_row(const WeightView& source, const PackedLayout& layout, int64_t row, int lane,
                        std::byte* strip, uint8_t* codes) {
  write_scales(source, layout, row, lane, strip);
  read_codes(source, row, codes);
  auto* units = reinterpret_cast<uint8_t*>(strip + layout.scale_bytes());
  const int64_t unit_bytes = layout.low_bytes() + layout.high_bytes();
  for (int64_t u = 0; u < layout.padded_cols / kUnitCols; ++u)
    write_planes(layout, codes + u * kUnitCols, lane, units + u * unit_bytes);
}

void pack_dense_row(const WeightView& source, const PackedLayout& layout, int64_t row, int lane,
                    std::byte* strip) {
  const std::byte* from = source.data + row * source.row_bytes();
  if (layout.dtype == DType::kFloat32) {
    std::memcpy(strip + lane * layout.padded_cols * 4, from, static_cast<size_t>(source.cols) * 4);
    return;
  }
  for (int64_t k = 0; k < source.cols; k += kTileCols) {
    const int64_t count = std::min(kTileCols, source.cols - k);
    std::memcpy(strip + (k / kTileCols * kStripRows + lane) * kTileCols * 2, from + k * 2,
                static_cast<size_t>(count) * 2);
  }
}

struct ScaleBias {
  float scale;
  float bias;
};

ScaleBias scale_of(const PackedLayout& layout, const std::byte* scales, int64_t group, int lane) {
  switch (layout.scale_kind) {
    case ScaleKind::kPairF32:
      return {read<float>(scales, 2 * group * 16 + lane),
              read<float>(scales, (2 * group + 1) * 16 + lane)};
    case ScaleKind::kPairF16:
      return {half_to_float(read<uint16_t>(scales, 2 * group * 16 + lane)),
              half_to_float(read<uint16_t>(scales, (2 * group + 1) * 16 + lane))};
    case ScaleKind::kPairBF16:
      return {bf16_to_float(read<uint16_t>(scales, 2 * group * 16 + lane)),
              bf16_to_float(read<uint16_t>(scales, (2 * group + 1) * 16 + lane))};
    case ScaleKind::kF16:
      return {half_to_float(read<uint16_t>(scales, group * 16 + lane)), 0};
    case ScaleKind::kSuper: {
      const std::byte* block = scales + group / 8 * kSuperScaleBytes;
      const int64_t at = group % 8 * 32 + lane;
      return {half_to_float(read<uint16_t>(block, lane)) *
                  static_cast<float>(read<uint8_t>(block + 64, at)),
              -(half_to_float(read<uint16_t>(block, 16 + lane)) *
                static_cast<float>(read<uint8_t>(block + 64, at + 16)))};
    }
    case ScaleKind::kSuperSigned: {
      const std::byte* block = scales + group / 16 * kSignedScaleBytes;
      return {half_to_float(read<uint16_t>(block, lane)) *
                  static_cast<float>(read<int8_t>(block + 32, group % 16 * 16 + lane)),
              0};
    }
    case ScaleKind::kE8M0:
      return {std::ldexp(1.0f, read<uint8_t>(scales, group * 16 + lane) - 127), 0};
    case ScaleKind::kNone:
      break;
  }
  OCTAVO_CHECK(false);
  return {};
}

int code_at(const PackedLayout& layout, const uint8_t* unit, int lane, int k) {
  const int low = low_bits(layout.bits);
  const int high = layout.bits - low;
  const int field = k / 16, j = k % 16;
  if (low == 8) {
    const uint8_t byte = unit[lane * kUnitCols + k];
    return layout.zero == 128 ? static_cast<int8_t>(byte) + 128 : byte;
  }
  const uint8_t* row = unit + lane * kUnitCols * low / 8;
  int code =
      low == 4 ? (row[2 * j + field / 2] >> (field % 2 * 4)) & 15 : (row[j] >> (2 * field)) & 3;
  row = unit + layout.low_bytes() + lane * kUnitCols * high / 8;
  if (high == 1) code |= ((row[k / 8] >> (k % 8)) & 1) << low;
  if (high == 2) code |= ((row[j] >> (2 * field)) & 3) << low;
  return code;
}

}  // namespace

int64_t PackedLayout::scale_bytes() const {
  const int64_t groups = group_size > 0 ? cols / group_size : 0;
  switch (scale_kind) {
    case ScaleKind::kNone:
      return 0;
    case ScaleKind::kPairF32:
      return groups * 2 * 16 * 4;
    case ScaleKind::kPairF16:
    case ScaleKind::kPairBF16:
      return groups * 2 * 16 * 2;
    case ScaleKind::kF16:
      return groups * 16 * 2;
    case ScaleKind::kSuper:
      return cols / kSuperCols * kSuperScaleBytes;
    case ScaleKind::kSuperSigned:
      return cols / kSuperCols * kSignedScaleBytes;
    case ScaleKind::kE8M0:
      return groups * 16;
  }
  return 0;
}

int64_t PackedLayout::low_bytes() const { return kStripRows * kUnitCols * low_bits(bits) / 8; }

int64_t PackedLayout::high_bytes() const {
  return kStripRows * kUnitCols * (bits - low_bits(bits)) / 8;
}

int64_t PackedLayout::strip_bytes() const {
  if (bits == 0) return kStripRows * padded_cols * static_cast<int64_t>(size_of(dtype));
  return scale_bytes() + padded_cols / kUnitCols * (low_bytes() + high_bytes());
}

std::string PackedLayout::describe() const {
  if (format == WeightFormat::kDense) return std::string(name_of(dtype));
  if (format == WeightFormat::kAffine) return fmt::format("affine {}-bit/{}", bits, group_size);
  return std::string(name_of(format));
}

PackedLayout packed_layout(const WeightView& source) {
  const FormatCodes codes = codes_of(source);
  if (codes.bits > 0) OCTAVO_CHECK(source.cols % codes.group_size == 0);
  return {.format = source.format,
          .dtype = source.dtype,
          .rows = source.rows,
          .cols = source.cols,
          .padded_cols = round_up(source.cols, kUnitCols),
          .bits = codes.bits,
          .group_size = codes.group_size,
          .zero = codes.zero,
          .scale_kind = codes.scales};
}

void pack_weight(const WeightView& source, const PackedLayout& layout,
                 std::span<const int> row_order, std::byte* out) {
  OCTAVO_CHECK(row_order.empty() || static_cast<int64_t>(row_order.size()) == layout.rows);
  OCTAVO_CHECK(!row_order.empty() || layout.rows == source.rows);
  if (source.data == nullptr) return;
  compute_pool().parallel_for(layout.strips(), 4, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> codes(static_cast<size_t>(layout.bits > 0 ? layout.padded_cols : 0));
    for (int64_t s = begin; s < end; ++s) {
      std::byte* strip = out + s * layout.strip_bytes();
      std::memset(strip, 0, static_cast<size_t>(layout.strip_bytes()));
      for (int lane = 0; lane < kStripRows && s * kStripRows + lane < layout.rows; ++lane) {
        const int64_t place = s * kStripRows + lane;
        const int64_t row = row_order.empty() ? place : row_order[static_cast<size_t>(place)];
        if (layout.bits == 0) {
          pack_dense_row(source, layout, row, lane, strip);
        } else {
          pack_quantized_row(source, layout, row, lane, strip, codes.data());
        }
      }
    }
  });
}

void unpack_row(const PackedView& weight, int64_t row, float* out) {
  const PackedLayout& layout = weight.layout;
  const std::byte* strip = weight.strip(row / kStripRows);
  const auto lane = static_cast<int>(row % kStripRows);
  if (layout.bits == 0 && layout.dtype == DType::kFloat32) {
    std::memcpy(out, strip + lane * layout.padded_cols * 4, static_cast<size_t>(layout.cols) * 4);
    return;
  }
  if (layout.bits == 0) {
    for (int64_t k = 0; k < layout.cols; k += kTileCols) {
      cpu::load_floats(strip + (k / kTileCols * kStripRows + lane) * kTileCols * 2, layout.dtype,
                       std::min(kTileCols, layout.cols - k), out + k);
    }
    return;
  }
  const auto* units = reinterpret_cast<const uint8_t*>(strip + layout.scale_bytes());
  const int64_t unit_bytes = layout.low_bytes() + layout.high_bytes();
  ScaleBias s{};
  for (int64_t k = 0; k < layout.cols; ++k) {
    if (k % layout.group_size == 0) s = scale_of(layout, strip, k / layout.group_size, lane);
    const int code =
        code_at(layout, units + k / kUnitCols * unit_bytes, lane, static_cast<int>(k % kUnitCols));
    if (layout.scale_kind == ScaleKind::kE8M0) {
      out[k] = kE2M1[code] * s.scale;
    } else {
      const float scaled = s.scale * static_cast<float>(code - layout.zero);
      out[k] = layout.zero != 0 ? scaled : scaled + s.bias;  // keeps a negative zero
    }
  }
}

}  // namespace octavo

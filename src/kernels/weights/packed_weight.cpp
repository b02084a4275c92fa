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

// One row's scale and bias of one group in the pair kinds, and scale alone in kF16, at the place of
// its group.
void write_small_block(const WeightView& w, int64_t row, int64_t group, int lane, std::byte* out) {
  const auto put = [&](int64_t at, uint16_t bits) { write(out, at * 16 + lane, bits); };
  switch (w.format) {
    case WeightFormat::kQ4_0:
      return put(0, source_blocks<BlockQ4_0>(w, row)[group].scale);
    case WeightFormat::kQ5_0:
      return put(0, source_blocks<BlockQ5_0>(w, row)[group].scale);
    case WeightFormat::kQ8_0:
      return put(0, source_blocks<BlockQ8_0>(w, row)[group].scale);
    case WeightFormat::kQ4_1:
      put(0, source_blocks<BlockQ4_1>(w, row)[group].scale);
      return put(1, source_blocks<BlockQ4_1>(w, row)[group].min);
    default:
      OCTAVO_CHECK(w.format == WeightFormat::kQ5_1);
      put(0, source_blocks<BlockQ5_1>(w, row)[group].scale);
      return put(1, source_blocks<BlockQ5_1>(w, row)[group].min);
  }
}

constexpr int64_t kSuperScaleBytes = 16 * 2 * 2 + 8 * 16 * 2;  // d, dmin; 8 scales and mins
constexpr int64_t kSignedScaleBytes = 16 * 2 + 16 * 16;        // d; 16 scales
constexpr int64_t kScaleAlignment = 64;

// Scales of one group of a strip, for kinds without blocks of their own.
int64_t group_bytes(ScaleKind kind) {
  switch (kind) {
    case ScaleKind::kPairF32:
      return 2 * 16 * 4;
    case ScaleKind::kPairF16:
    case ScaleKind::kPairBF16:
      return 2 * 16 * 2;
    case ScaleKind::kF16:
      return 16 * 2;
    case ScaleKind::kE8M0:
      return 16;
    case ScaleKind::kNone:
    case ScaleKind::kSuper:
    case ScaleKind::kSuperSigned:
      break;
  }
  OCTAVO_CHECK(false);
  return 0;
}

// The scales of one row's block of 256 inputs.
void write_super(const WeightView& w, int64_t row, int64_t block, int lane, std::byte* out) {
  const bool five = w.format == WeightFormat::kQ5_K;
  const auto& four_bits = source_blocks<BlockQ4_K>(w, row)[five ? 0 : block];
  const auto& five_bits = source_blocks<BlockQ5_K>(w, row)[five ? block : 0];
  write(out, lane, five ? five_bits.scale : four_bits.scale);
  write(out, 16 + lane, five ? five_bits.min : four_bits.min);
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin s = scale_and_min(five ? five_bits.scales : four_bits.scales, group);
    write(out + 64, group * 32 + lane, s.scale);
    write(out + 64, group * 32 + 16 + lane, s.min);
  }
}

void write_super_signed(const WeightView& w, int64_t row, int64_t block, int lane, std::byte* out) {
  const BlockQ6_K& from = source_blocks<BlockQ6_K>(w, row)[block];
  write(out, lane, from.scale);
  for (int group = 0; group < 16; ++group) write(out + 32, group * 16 + lane, from.scales[group]);
}

// One row's scales of one group, at the place of its group.
void write_group(const WeightView& w, int64_t row, int64_t group, int lane, std::byte* out) {
  const bool is_mxfp4 = w.format == WeightFormat::kMxfp4;
  if (!is_mxfp4 && w.format != WeightFormat::kAffine)
    return write_small_block(w, row, group, lane, out);
  const int64_t at = row * (w.cols / w.group_size) + group;
  if (is_mxfp4) {
    write(out, lane, read<uint8_t>(w.scales, at));
  } else if (w.dtype == DType::kFloat32) {
    write(out, lane, read<uint32_t>(w.scales, at));
    write(out, 16 + lane, read<uint32_t>(w.biases, at));
  } else {
    write(out, lane, read<uint16_t>(w.scales, at));
    write(out, 16 + lane, read<uint16_t>(w.biases, at));
  }
}

// One row's scales of one block.
void write_scales(const WeightView& w, const PackedLayout& layout, int64_t row, int64_t block,
                  int lane, std::byte* out) {
  if (layout.scale_kind == ScaleKind::kSuper) return write_super(w, row, block, lane, out);
  if (layout.scale_kind == ScaleKind::kSuperSigned)
    return write_super_signed(w, row, block, lane, out);
  const int64_t groups = layout.block_cols() / layout.group_size;
  const int64_t first = block * groups;
  const int64_t end = std::min(first + groups, w.cols / layout.group_size);
  for (int64_t g = first; g < end; ++g)
    write_group(w, row, g, lane, out + (g - first) * group_bytes(layout.scale_kind));
}

// Where the code of a row (lane) and an input (k, of 64) lies in a plane of fields of 2, 4 or 8 bits.
struct CodePlace {
  int byte;
  int shift;
};
CodePlace place_of(int field_bits, int lane, int k) {
  const int quad = k / 4, lines = 2 * field_bits;
  return {quad % lines * 64 + 4 * lane + k % 4, quad / lines * field_bits};
}
// The same in a plane of single bits.
CodePlace bit_place_of(int lane, int k) { return {k / 4 * 8 + lane / 2, lane % 2 * 4 + k % 4}; }

// Writes one row's 64 codes to the planes of a unit, which are zero before.
void write_planes(const PackedLayout& layout, const uint8_t* codes, int lane, uint8_t* unit) {
  const int low = low_bits(layout.bits);
  const int high = layout.bits - low;
  uint8_t* high_plane = unit + layout.low_bytes();
  const auto put = [](uint8_t* plane, CodePlace place, int bits) {
    plane[place.byte] = static_cast<uint8_t>(plane[place.byte] | bits << place.shift);
  };
  for (int k = 0; k < kUnitCols; ++k) {
    put(unit, place_of(low, lane, k), codes[k] & ((1 << low) - 1));
    if (high == 1) put(high_plane, bit_place_of(lane, k), codes[k] >> low);
    if (high == 2) put(high_plane, place_of(2, lane, k), codes[k] >> low);
  }
}

void pack_quantized_row(const WeightView& source, const PackedLayout& layout, int64_t row, int lane,
                        std::byte* strip, uint8_t* codes) {
  read_codes(source, row, codes);
  const int64_t units_per_block = layout.block_cols() / kUnitCols;
  for (int64_t u = 0; u < layout.padded_cols / kUnitCols; ++u) {
    std::byte* block = strip + u / units_per_block * layout.block_bytes();
    if (u % units_per_block == 0)
      write_scales(source, layout, row, u / units_per_block, lane, block);
    std::byte* unit = block + layout.scale_bytes() + u % units_per_block * layout.unit_bytes();
    write_planes(layout, codes + u * kUnitCols, lane, reinterpret_cast<uint8_t*>(unit));
  }
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

// Of a group of a block.
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
      const int64_t at = group * 32 + lane;
      return {half_to_float(read<uint16_t>(scales, lane)) *
                  static_cast<float>(read<uint8_t>(scales + 64, at)),
              -(half_to_float(read<uint16_t>(scales, 16 + lane)) *
                static_cast<float>(read<uint8_t>(scales + 64, at + 16)))};
    }
    case ScaleKind::kSuperSigned:
      return {half_to_float(read<uint16_t>(scales, lane)) *
                  static_cast<float>(read<int8_t>(scales + 32, group * 16 + lane)),
              0};
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
  const uint8_t* high_plane = unit + layout.low_bytes();
  const auto get = [](const uint8_t* plane, CodePlace place, int bits) {
    return (plane[place.byte] >> place.shift) & ((1 << bits) - 1);
  };
  int code = get(unit, place_of(low, lane, k), low);
  if (high == 1) code |= get(high_plane, bit_place_of(lane, k), 1) << low;
  if (high == 2) code |= get(high_plane, place_of(2, lane, k), 2) << low;
  return code;
}

}  // namespace

int64_t PackedLayout::block_cols() const {
  switch (scale_kind) {
    case ScaleKind::kSuper:
    case ScaleKind::kSuperSigned:
      return kSuperCols;
    case ScaleKind::kE8M0:
      return 2 * kUnitCols;  // a whole line of scales
    default:
      return std::max(group_size, kUnitCols);
  }
}

int64_t PackedLayout::scale_bytes() const {
  switch (scale_kind) {
    case ScaleKind::kNone:
      return 0;
    case ScaleKind::kSuper:
      return round_up(kSuperScaleBytes, kScaleAlignment);
    case ScaleKind::kSuperSigned:
      return round_up(kSignedScaleBytes, kScaleAlignment);
    default:
      return round_up(block_cols() / group_size * group_bytes(scale_kind), kScaleAlignment);
  }
}

int64_t PackedLayout::low_bytes() const { return kStripRows * kUnitCols * low_bits(bits) / 8; }

int64_t PackedLayout::high_bytes() const {
  return kStripRows * kUnitCols * (bits - low_bits(bits)) / 8;
}

int64_t PackedLayout::strip_bytes() const {
  if (bits == 0) return kStripRows * padded_cols * static_cast<int64_t>(size_of(dtype));
  const int64_t blocks = (padded_cols + block_cols() - 1) / block_cols();
  return blocks * scale_bytes() + padded_cols / kUnitCols * unit_bytes();
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
  ScaleBias s{};
  for (int64_t k = 0; k < layout.cols; ++k) {
    const std::byte* block = strip + k / layout.block_cols() * layout.block_bytes();
    const int64_t in_block = k % layout.block_cols();
    if (k % layout.group_size == 0) s = scale_of(layout, block, in_block / layout.group_size, lane);
    const std::byte* unit =
        block + layout.scale_bytes() + in_block / kUnitCols * layout.unit_bytes();
    const int code = code_at(layout, reinterpret_cast<const uint8_t*>(unit), lane,
                             static_cast<int>(k % kUnitCols));
    if (layout.scale_kind == ScaleKind::kE8M0) {
      out[k] = kE2M1[code] * s.scale;
    } else {
      const float scaled = s.scale * static_cast<float>(code - layout.zero);
      out[k] = layout.zero != 0 ? scaled : scaled + s.bias;  // keeps a negative zero
    }
  }
}

}  // namespace octavo

#include "kernels/weights/packed_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/weights/format_codes.h"
#include "kernels/weights/gguf_blocks.h"
#include "kernels/weights/pack_scales.h"

namespace octavo {
namespace {

constexpr int64_t kTileCols = 32;
constexpr int64_t kSuperCols = kSuperBlock;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

int low_bits(int bits) { return bits == 8 ? 8 : bits >= 4 ? 4 : 2; }

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
    case ScaleKind::kSuperNibbles:
      return kSuperCols;
    case ScaleKind::kE8M0:
      return 2 * kUnitCols;  // a whole line of scales
    default:
      return std::max(group_size, kUnitCols);
  }
}

int64_t PackedLayout::scale_bytes() const {
  return scale_kind == ScaleKind::kNone ? 0 : packed_scale_bytes(*this);
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
          .scale_kind = codes.scales,
          .table = codes.table};
}

void pack_weight(const WeightView& source, const PackedLayout& layout,
                 std::span<const int> row_order, std::byte* out) {
  OCTAVO_CHECK(row_order.empty() || static_cast<int64_t>(row_order.size()) == layout.rows);
  OCTAVO_CHECK(!row_order.empty() || layout.rows == source.rows);
  if (source.data == nullptr) return;
  // Pieces of one strip give every thread the strips that it multiplies later (strip_claims.h), so
  // that they are in the memory of its NUMA node.
  compute_pool().parallel_for(layout.strips(), 1, [&](int64_t begin, int64_t end) {
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
  const CodeNumbers* table = numbers_of(layout.table);
  ScaleBias s{};
  for (int64_t k = 0; k < layout.cols; ++k) {
    const std::byte* block = strip + k / layout.block_cols() * layout.block_bytes();
    const int64_t in_block = k % layout.block_cols();
    if (k % layout.group_size == 0)
      s = read_scale(layout, block, in_block / layout.group_size, lane);
    const std::byte* unit =
        block + layout.scale_bytes() + in_block / kUnitCols * layout.unit_bytes();
    const int code = code_at(layout, reinterpret_cast<const uint8_t*>(unit), lane,
                             static_cast<int>(k % kUnitCols));
    if (table != nullptr) {
      out[k] = s.scale * table->factor * table->number[code];
    } else {
      const float scaled = s.scale * static_cast<float>(code - layout.zero);
      out[k] = layout.zero != 0 ? scaled : scaled + s.bias;  // keeps a negative zero
    }
  }
}

}  // namespace octavo

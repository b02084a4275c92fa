// packed_weight.h - a weight matrix in the order the CPU kernels read it. No MLX.
//
// Sixteen rows (outputs) form a strip, and a strip is one run of memory, so that threads split a
// matrix by strips and each reads forward. The inputs keep the row's order, so the order
// of a kernel's sum depends on the weight alone.
//
//   dense 16-bit   per 32 inputs: [16 rows][32]                    (one tile of the matrix unit)
//   dense 32-bit   [16 rows][padded_cols]
//   quantised      blocks of block_cols inputs: their scales, then per 64 inputs a unit:
//                  its low plane, then its high plane
//
// A unit's inputs are 16 quads of four. A line of a plane holds one field of each byte per quad and
// row: byte 4 n + k is input 4 q + k of row n. Integer dot products read lines as they are.
//
//   bits     low plane                                high plane
//   2, 3     4 lines: quad q in line q % 4, field     1-bit (3): line q has 8 bytes,
//            q / 4 (2 bits)                           bit 4 n + k is of row n
//   4, 5, 6  8 lines: quad q in line q % 8, field     1-bit (5) as above, 2-bit (6) as the low
//            q / 8 (4 bits)                           plane of 2 bits
//   8        16 lines
//
// A number is scale * (code - zero) + bias or, with a table, scale * the table's number of the code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/types/weight_format.h"
#include "kernels/weights/code_table.h"

namespace octavo {

inline constexpr int kStripRows = 16;
inline constexpr int kUnitCols = 64;  // inputs of a quantised unit

// The scales of a block, by group of inputs; "16 x" means one per row of the strip. Blocks of scales
// are padded to 64 bytes.
enum class ScaleKind : uint8_t {
  kNone,      // dense
  kPairF32,   // 16 x scale, 16 x bias, float32
  kPairF16,   // the same in float16
  kPairBF16,  // the same in bfloat16
  kF16,       // 16 x scale, float16; no bias
  kSuper,     // per 256 inputs: 16 x d, 16 x dmin (float16), then per 32: 16 x scale, 16 x min (u8)
  kSuperSigned,  // per 256 inputs: 16 x d (float16), then per group: 16 x scale (i8)
  kE8M0,         // 16 x e (u8), for 2^(e - 128)
  kSuperNibbles,  // per 256 inputs: 16 x d, 16 x dmin (float16), then per 16: 16 x scale | min << 4 (u8)
};

struct PackedLayout {
  WeightFormat format = WeightFormat::kDense;
  DType dtype = DType::kFloat32;  // dense
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t padded_cols = 0;  // to a multiple of 64: zeros follow the last input
  int bits = 0;             // of a code; 0: dense
  int group_size = 0;       // inputs that share a scale
  int zero = 0;             // the code of 0 before the bias
  ScaleKind scale_kind = ScaleKind::kNone;
  CodeTable table = CodeTable::kNone;

  int64_t strips() const { return (rows + kStripRows - 1) / kStripRows; }
  int64_t block_cols() const;   // inputs of a block of scales: a multiple of the group and of 64
  int64_t scale_bytes() const;  // of one block
  int64_t low_bytes() const;    // of one unit: its low plane
  int64_t high_bytes() const;   // and its high plane
  int64_t unit_bytes() const { return low_bytes() + high_bytes(); }
  int64_t block_bytes() const { return scale_bytes() + block_cols() / kUnitCols * unit_bytes(); }
  int64_t strip_bytes() const;
  int64_t bytes() const { return strips() * strip_bytes(); }
  std::string describe() const;  // "bfloat16", "affine 4-bit/64", "q4_k"

  bool operator==(const PackedLayout&) const = default;
};

PackedLayout packed_layout(const WeightView& source);

struct PackedView {
  PackedLayout layout = {};
  const std::byte* data = nullptr;

  const std::byte* strip(int64_t index) const { return data + index * layout.strip_bytes(); }
};

// Writes `source` to `out` (layout.bytes() bytes) with every thread. Row r of the layout.rows rows
// is row row_order[r] of the source; an empty order keeps the order of the source. Writes nothing
// if the source has no data (only its shape is used).
void pack_weight(const WeightView& source, const PackedLayout& layout,
                 std::span<const int> row_order, std::byte* out);

// One row as float32: out[0 .. cols). The same bits as decoding the source row.
void unpack_row(const PackedView& weight, int64_t row, float* out);

}  // namespace octavo

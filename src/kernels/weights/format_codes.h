// format_codes.h - how each weight format stores its codes: bits, groups, zero point, and the codes
// of a row. No MLX.
#pragma once

#include <cstdint>

#include "kernels/weights/gguf_blocks.h"
#include "kernels/weights/packed_weight.h"

namespace octavo {

struct FormatCodes {
  int bits;  // 0: not quantised
  int group_size;
  int zero;
  ScaleKind scales;
  CodeTable table = CodeTable::kNone;
};
FormatCodes codes_of(const WeightView& source);

// The codes of one source row in input order.
void read_codes(const WeightView& source, int64_t row, uint8_t* out);

// The scales of one source row's block of 256 inputs, of formats of kind kSuperSigned.
struct SignedScales {
  uint16_t scale;  // float16
  int groups;
  int8_t of_group[kSuperBlock / 16];
};
SignedScales signed_scales(const WeightView& source, int64_t row, int64_t block);

// The blocks of one source row of a GGUF format.
template <typename Block>
const Block* source_blocks(const WeightView& source, int64_t row) {
  return reinterpret_cast<const Block*>(source.data + row * source.row_bytes());
}

}  // namespace octavo

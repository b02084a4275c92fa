// embed.metal - rows of a packed table, decoded.
//
// A thread decodes 32 elements of a row: half of a unit, see weights.msl. Grid: x halves of units,
// y tokens. Memory: none. Limit: bandwidth, the codes of the row's strip (a row's pieces of 4 bytes
// are in every cache line, because rows are interleaved) and cols * sizeof(U) written.
#include "kernels/metal/embed_params.h"
#include "kernels/metal/shaders/weights.msl"

template <typename U>
[[kernel]] void embed_rows(
    const device int* tokens [[buffer(0)]],
    const device uchar* table [[buffer(1)]],
    device U* out [[buffer(2)]],
    constant EmbedParams& params [[buffer(3)]],
    uint3 place [[thread_position_in_grid]]) {
  const int unit = int(place.x) / 2, side = int(place.x) % 2;
  if (unit * kUnitInputs >= params.cols) return;
  const int token = tokens[place.y];
  const ulong strip_at = ulong(token / kUnitRows) * params.strip_bytes;
  const Strip strip = {table + strip_at, params.cols, params.padded_cols};
  const Share share = decode_share(strip, unit, token % kUnitRows, side);
  device U* row = out + ulong(place.y) * params.cols;
  UNROLL
  for (int i = 0; i < 8; ++i) {
    const int input = unit * kUnitInputs + 16 * (i / 2) + 8 * side + 4 * (i % 2);
    for (int j = 0; j < 4; ++j) {
      if (input + j < params.cols) row[input + j] = U(share.of[i][j] * params.scale);
    }
  }
}

// linear.metal - out = x W^T and the operations of LinearOptions, for dense weights, and for quantised
// ones if the rows are float32.
//
// A threadgroup of 4 simdgroups computes 8 * RowTiles rows of Strips strips (16 outputs each):
// either adjacent strips, or one of the gate and one of up. Simdgroup p sums the units (64 inputs)
// p, p + 4, p + 8, ...; their sums are added in order 0..3, then the operations of LinearOptions
// follow. Grid: x groups of strips of all parts, y tiles of rows. The bits of an output do not
// depend on RowTiles, Strips or other rows.
//
// T: x; C: type of the product, T or float (weights are decoded and rounded to it once); U: out; B:
// bias. Memory per simdgroup: Strips units of C, and 8 x 32 elements of C. In total 10 or 18 KiB
// for 16-bit C, 20 KiB for float, which uses a single strip. Limit with few rows: bandwidth, each
// weight is read once; 8 rows are always computed. Limit with many rows: the matrix units, fed from the
// cache: x is read once per group of strips, the weight once per 8 * RowTiles rows.
#include "kernels/metal/shaders/product.msl"

constant constexpr int kThreads = kKParts * kSimdWidth;

// A thread's results: of[s][t] belongs to strip s, tile t of 8 rows, row thread / 16, output
// thread % 16.
template <int RowTiles, int Strips>
struct ThreadSums {
  float of[Strips][RowTiles];
};

// Adds the sums of all simdgroups in order. memory: `pitch` float4s per simdgroup.
template <typename T, typename C, int RowTiles, int Strips>
inline void full_product(RowsOf<T> rows, thread const StripsOf<Strips>& strips,
                         threadgroup float4* memory, int pitch, threadgroup C* staged,
                         uint thread_index, thread ThreadSums<RowTiles, Strips>& added) {
  const int part = thread_index / kSimdWidth;
  const ushort lane = thread_index % kSimdWidth;
  Workspace<C> workspace = {(threadgroup C*)(memory + part * pitch),
                            staged + part * 8 * kTileInputs};
  TileSums<RowTiles, Strips> sums;
  UNROLL
  for (int t = 0; t < RowTiles; ++t) {
    UNROLL
    for (int h = 0; h < 2 * Strips; ++h)
      sums.of[t][h] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  add_product(rows, strips, part, lane, workspace, sums);
  // The decoded weights are no longer needed: their memory now holds the sums, [strip][row][16].
  simdgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float* own = (threadgroup float*)(memory + part * pitch);
  UNROLL
  for (int t = 0; t < RowTiles; ++t) {
    UNROLL
    for (int h = 0; h < 2 * Strips; ++h) {
      const int row = h / 2 * 8 * RowTiles + 8 * t;
      simdgroup_store(sums.of[t][h], own + row * kUnitRows + h % 2 * 8, kUnitRows);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  UNROLL
  for (int s = 0; s < Strips; ++s) {
    UNROLL
    for (int t = 0; t < RowTiles; ++t) {
      const int at = (s * RowTiles + t) * kThreads + thread_index;
      float sum = ((threadgroup float*)memory)[at];
      for (int p = 1; p < kKParts; ++p) sum += ((threadgroup float*)(memory + p * pitch))[at];
      added.of[s][t] = sum;
    }
  }
}

template <typename T, typename C, typename U, typename B, int RowTiles, int Strips>
[[kernel, max_total_threads_per_threadgroup(kKParts * 32)]] void linear_rows(
    const device T* x [[buffer(0)]],
    const device uchar* weight0 [[buffer(1)]],
    const device uchar* weight1 [[buffer(2)]],
    const device uchar* weight2 [[buffer(3)]],
    const device uchar* weight3 [[buffer(4)]],
    const device B* bias0 [[buffer(5), function_constant(kHasBias)]],
    const device B* bias1 [[buffer(6), function_constant(kHasBias)]],
    const device B* bias2 [[buffer(7), function_constant(kHasBias)]],
    const device B* bias3 [[buffer(8), function_constant(kHasBias)]],
    const device U* residual [[buffer(9), function_constant(kHasResidual)]],
    const device float* up [[buffer(10), function_constant(kHasUp)]],
    const device int* tiles [[buffer(11), function_constant(kHasTiles)]],
    const device int* list [[buffer(12), function_constant(kIsListed)]],
    device U* out [[buffer(13)]],
    constant LinearParams& params [[buffer(14)]],
    const device float* lora [[buffer(15), function_constant(kHasLora)]],
    const device int* lora_places [[buffer(16), function_constant(kHasLora)]],
    uint3 place [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int kRows = 8 * RowTiles;
  constexpr int kPitch = Strips * kUnitRows * kUnitInputs * int(sizeof(C)) / 16;
  threadgroup float4 memory[kKParts * kPitch];
  threadgroup C staged[kKParts * 8 * kTileInputs];

  const TilePlace tile = tile_place(kHasTiles ? tiles : nullptr, int(place.y), kRows, params.rows);
  if (tile.count == 0) return;
  const StripPlace place_of = strip_place(params, int(place.x), tile.expert);
  const bool is_pair = kGate == kGateAndUp;
  const int part = place_of.part;
  const device uchar* weight = part == 0   ? weight0
                               : part == 1 ? weight1
                               : part == 2 ? weight2
                                           : weight3;
  StripsOf<Strips> strips;
  strips.count = is_pair ? 2 : place_of.count;
  UNROLL
  for (int s = 0; s < Strips; ++s) {
    const device uchar* data = is_pair && s == 1
                                   ? weight1 + place_of.at_strip
                                   : weight + place_of.at_strip + ulong(s) * params.strip_bytes;
    strips.of[s] = {data, params.cols, params.padded_cols};
  }
  const RowsOf<T> rows = {x + place_of.head * params.x_head_stride, ulong(params.x_stride),
                          kIsListed ? list : nullptr, tile.first, tile.count};
  ThreadSums<RowTiles, Strips> sums;
  full_product(rows, strips, memory, kPitch, staged, thread_index, sums);

  const Results<U, B> results = {
      kHasBias ? (part == 0 ? bias0 : part == 1 ? bias1 : part == 2 ? bias2 : bias3) : nullptr,
      kHasBias ? bias1 : nullptr,
      kHasResidual ? residual : nullptr,
      kHasUp ? up : nullptr,
      kHasLora ? lora : nullptr,
      kHasLora ? lora_places : nullptr,
      out,
      tile,
      place_of};
  UNROLL
  for (int s = 0; s < Strips; ++s) {
    const int n = (place_of.first_strip + s) * kUnitRows + int(thread_index) % kUnitRows;
    if (n >= place_of.layer.outputs || (is_pair && s == 1)) continue;
    UNROLL
    for (int t = 0; t < RowTiles; ++t) {
      // Tile t starts before row 8 t if it would extend past the last row.
      const int row = max(min(8 * t, tile.count - 8), 0) + int(thread_index) / kUnitRows;
      if (row < 8 * t || row >= tile.count) continue;
      write_result(results, params, row, n, sums.of[s][t], sums.of[Strips - 1][t]);
    }
  }
}

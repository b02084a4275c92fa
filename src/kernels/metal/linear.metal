// linear.metal - out = x W^T with what stands around it, for every weight format, one or many rows.
//
// A threadgroup of 4 simdgroups makes 8 * RowTiles rows of one strip (16 outputs). Simdgroup p adds up
// the units (64 inputs) p, p + 4, p + 8, ...; their sums are added in order 0..3, then comes what
// LinearOptions asks for. Grid: x strips of all parts, y tiles of rows. A number's bits do not depend
// on RowTiles, nor on the rows beside it.
//
// T: x; C: what is multiplied, T or float (weights decoded and rounded to it once); U: out; B: bias.
// Memory: per simdgroup a unit of C and 8 x 32 of C: 10 KiB in all for 16-bit C, 20 KiB for float.
// Limit: few rows: each weight is read once, bandwidth, for codes below 6 bits the matrix units too
// (8 rows are computed: 16 operations per weight). Many rows: the matrix units, fed from the cache:
// x is read once per strip, the weight once per 8 * RowTiles rows.
#include "kernels/metal/activations.msl"
#include "kernels/metal/product.msl"

constant int kGate [[function_constant(6)]];
constant int kActivation [[function_constant(7)]];
constant bool kHasBias [[function_constant(8)]];
constant bool kHasResidual [[function_constant(9)]];
constant bool kHasTiles [[function_constant(10)]];
constant bool kHasSecond = kGate == kGateAndUp;
constant bool kHasUp = kGate == kUpGiven;

constant constexpr int kThreads = kKParts * kSimdWidth;

// A thread's numbers of the tile: number i is of row (thread + i * kThreads) / 16.
template <int RowTiles>
struct ThreadSums {
  float of[RowTiles];
};

// Every simdgroup's sums, added in their order.
template <typename T, typename C, int RowTiles>
inline ThreadSums<RowTiles> full_product(RowsOf<T> rows, thread const Strip& strip,
                                         threadgroup float4* memory, int pitch, threadgroup C* staged,
                                         uint thread_index) {
  const int part = thread_index / kSimdWidth;
  const ushort lane = thread_index % kSimdWidth;
  Workspace<C> workspace = {(threadgroup C*)(memory + part * pitch), staged + part * 8 * kTileInputs};
  TileSums<RowTiles> sums;
  UNROLL
  for (int t = 0; t < RowTiles; ++t) {
    UNROLL
    for (int h = 0; h < 2; ++h) sums.of[t][h] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  add_product(rows, strip, part, lane, workspace, sums);
  // The decoded weights have been used: their memory takes the sums.
  simdgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float* own = (threadgroup float*)(memory + part * pitch);
  UNROLL
  for (int t = 0; t < RowTiles; ++t) {
    UNROLL
    for (int h = 0; h < 2; ++h)
      simdgroup_store(sums.of[t][h], own + 8 * t * kUnitRows + 8 * h, kUnitRows);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  ThreadSums<RowTiles> added;
  UNROLL
  for (int i = 0; i < RowTiles; ++i) {
    const int at = thread_index + i * kThreads;
    float sum = ((threadgroup float*)memory)[at];
    for (int p = 1; p < kKParts; ++p) sum += ((threadgroup float*)(memory + p * pitch))[at];
    added.of[i] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return added;
}

template <typename T, typename C, typename U, typename B, int RowTiles>
[[kernel]] void linear_rows(
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
    uint3 place [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int kRows = 8 * RowTiles;
  constexpr int kPitch = kUnitRows * kUnitInputs * int(sizeof(C)) / 16;  // float4s of a simdgroup
  threadgroup float4 memory[kKParts * kPitch];
  threadgroup C staged[kKParts * 8 * kTileInputs];

  int expert = 0;
  int first = int(place.y) * kRows;
  int count = min(kRows, params.rows - first);
  if (kHasTiles) {
    if (int(place.y) >= tiles[0]) return;
    const device int* tile = tiles + 1 + int(place.y) * kTileWords;
    expert = tile[0];
    first = tile[1];
    count = tile[2];
  }
  int part = 0;
  while (part + 1 < params.part_count && int(place.x) >= params.parts[part + 1].first_strip) ++part;
  const int outputs = params.parts[part].outputs;
  const int strip_index = int(place.x) - params.parts[part].first_strip;
  const int strips = (outputs + kUnitRows - 1) / kUnitRows;
  const ulong strip_at = ulong(expert * strips + strip_index) * params.strip_bytes;

  const device uchar* weight = part == 0   ? weight0
                               : part == 1 ? weight1
                               : part == 2 ? weight2
                                           : weight3;
  const device T* x_of_head = x + strip_index / params.strips_per_head * params.cols;
  const RowsOf<T> rows = {x_of_head, ulong(params.x_stride), kIsListed ? list : nullptr, first, count};
  Strip strip = {weight + strip_at, params.cols, params.padded_cols, params.scale_bytes};
  const ThreadSums<RowTiles> sums =
      full_product<T, C, RowTiles>(rows, strip, memory, kPitch, staged, thread_index);
  ThreadSums<RowTiles> second;
  if (kHasSecond) {
    strip.data = weight1 + strip_at;
    second = full_product<T, C, RowTiles>(rows, strip, memory, kPitch, staged, thread_index);
  }

  const int n = strip_index * kUnitRows + int(thread_index) % kUnitRows;
  if (n >= outputs) return;
  UNROLL
  for (int i = 0; i < RowTiles; ++i) {
    // Tile i begins before row 8 i where it would pass the last row.
    const int row = max(min(8 * i, count - 8), 0) + int(thread_index) / kUnitRows;
    if (row < 8 * i || row >= count) continue;
    const ulong at = ulong(first + row) * params.out_stride + params.parts[part].out_first + n;
    float value = sums.of[i];
    if (kHasBias) {
      const device B* bias = part == 0 ? bias0 : part == 1 ? bias1 : part == 2 ? bias2 : bias3;
      if (params.parts[part].has_bias) value += float(bias[expert * outputs + n]);
    }
    if (kHasSecond) {
      float partner = second.of[i];
      if (kHasBias) partner += float(bias1[expert * outputs + n]);
      value = gate_up(kActivation, value, partner);
    } else if (kHasUp) {
      value = gate_up(kActivation, value, up[ulong(first + row) * outputs + n]);
    } else {
      value *= params.scale;
    }
    if (kHasResidual) {
      value = float(residual[at]) + value;
    } else if (params.soft_cap > 0.0f) {
      value = params.soft_cap * precise::tanh(value * (1.0f / params.soft_cap));
    }
    out[at] = U(value);
  }
}

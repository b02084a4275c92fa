// dense_matrix.metal - out = x W^T and the operations of LinearOptions, for many rows and dense weights of
// the rows' 16-bit type.
//
// A threadgroup of 4 simdgroups computes 64 rows of 4 strips (64 outputs), or of 2 strips of a gate and 2 of up:
// simdgroup s has rows 32 (s / 2) to 32 (s / 2) + 31 and two strips. All read the same unit of 64 inputs,
// which they copy to threadgroup memory. Units are taken in the order of linear.metal's simdgroups, one
// after the other (0, 4, 8, ..., then 1, 5, ...), and the four sums are added in order: the bits are those of
// linear.metal. Grid: x groups of strips of all parts, y tiles of rows.
//
// Memory: 18 KiB. Limit: the matrix units; x and the weight are read once per 64 outputs or rows.
#include "kernels/metal/shaders/linear_place.msl"
#include "kernels/metal/shaders/matrix_lanes.msl"
#include "kernels/metal/shaders/weights.msl"

constant constexpr int kPitch = kUnitInputs + 8;  // 8: rows start in different banks
constant constexpr int kThreads = kKParts * kSimdWidth;
constant constexpr int kTiles = 4;                // 8 x 8 tiles of a simdgroup, in both directions
constant constexpr int kSides = kDenseRows / kUnitRows;  // strips of 16 outputs

// For loops that would need many registers if their rounds were merged.
#define ROLLED _Pragma("clang loop unroll(disable)")

template <typename T>
struct Eight {
  vec<T, 4> low;
  vec<T, 4> high;
};

// Eight inputs from `col` on; zeros past the last.
template <typename T>
inline Eight<T> load_eight(const device T* row, int col, int cols) {
  Eight<T> eight;
  if (col + 8 <= cols) {
    eight.low = *(const device vec<T, 4>*)(row + col);
    eight.high = *(const device vec<T, 4>*)(row + col + 4);
    return eight;
  }
  UNROLL
  for (int i = 0; i < 4; ++i) {
    eight.low[i] = col + i < cols ? row[col + i] : T(0.0f);
    eight.high[i] = col + 4 + i < cols ? row[col + 4 + i] : T(0.0f);
  }
  return eight;
}

template <typename T>
inline void store_eight(threadgroup T* to, Eight<T> eight) {
  *(threadgroup vec<T, 4>*)to = eight.low;
  *(threadgroup vec<T, 4>*)(to + 4) = eight.high;
}

// A unit of the tile's rows, [64][kPitch].
template <typename T>
inline void copy_rows(RowsOf<T> rows, int input, int cols, threadgroup T* to, uint thread_index) {
  ROLLED
  for (int pass = 0; pass < kDenseRows * kUnitInputs / 8 / kThreads; ++pass) {
    const int at = pass * kThreads + int(thread_index);
    const int row = at / (kUnitInputs / 8);
    const int col = at % (kUnitInputs / 8) * 8;
    const bool is_there = row < rows.count;
    store_eight(to + row * kPitch + col,
                load_eight(row_of(rows, is_there ? row : 0), is_there ? input + col : cols, cols));
  }
}

// Four strips: of one layer, or alternately of a gate and of up.
struct StripsOf {
  const device uchar* even;
  const device uchar* odd;
  ulong step;  // bytes from one even or odd strip to the next
  int count;   // the others are past the end of the matrix
};

// A unit of the strips, [64 outputs][kPitch]; stored in tiles of [16 outputs][32 inputs].
template <typename T>
inline void copy_weights(StripsOf strips, int input, int padded_cols, threadgroup T* to,
                         uint thread_index) {
  constexpr int kOfStrip = kUnitRows * kUnitInputs / 8 / kThreads;  // one pass per strip
  static_assert(kOfStrip == 1, "128 threads copy a strip's unit");
  const int tile = int(thread_index) / (kUnitRows * kTileInputs / 8);
  const int output = int(thread_index) % (kUnitRows * kTileInputs / 8) / (kTileInputs / 8);
  const int col = int(thread_index) % (kTileInputs / 8) * 8;
  ROLLED
  for (int s = 0; s < kSides; ++s) {
    const device T* from =
        (const device T*)((s % 2 == 0 ? strips.even : strips.odd) + ulong(s / 2) * strips.step);
    const int first = input + tile * kTileInputs;
    const bool is_there = s < strips.count && first < padded_cols;
    store_eight(to + (s * kUnitRows + output) * kPitch + tile * kTileInputs + col,
                load_eight(from + first * kUnitRows + output * kTileInputs, is_there ? col : 0,
                           is_there ? kTileInputs : 0));
  }
}

struct TileSums {
  simdgroup_matrix<float, 8, 8> of[kTiles][kTiles];
};

// Adds 32 inputs from `col` of the unit.
template <typename T>
inline void add_tile(const threadgroup T* rows, const threadgroup T* outputs, int col,
                     thread TileSums& sums) {
  UNROLL
  for (int k = 0; k < kTileInputs; k += 8) {
    simdgroup_matrix<T, 8, 8> x[kTiles];
    UNROLL
    for (int t = 0; t < kTiles; ++t) simdgroup_load(x[t], rows + 8 * t * kPitch + col + k, kPitch);
    UNROLL
    for (int h = 0; h < kTiles; ++h) {
      simdgroup_matrix<T, 8, 8> weight;
      simdgroup_load(weight, outputs + 8 * h * kPitch + col + k, kPitch, ulong2(0, 0), true);
      UNROLL
      for (int t = 0; t < kTiles; ++t)
        simdgroup_multiply_accumulate(sums.of[t][h], x[t], weight, sums.of[t][h]);
    }
  }
}

template <typename T, typename U, typename B>
[[kernel, max_total_threads_per_threadgroup(kKParts * 32)]] void dense_matrix(
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
  threadgroup T row_unit[kDenseRows * kPitch];
  threadgroup T weight_unit[kDenseRows * kPitch];

  const TilePlace tile =
      tile_place(kHasTiles ? tiles : nullptr, int(place.y), kDenseRows, params.rows);
  if (tile.count == 0) return;
  const StripPlace place_of = strip_place(params, int(place.x), tile.expert);
  const bool is_pair = kGate == kGateAndUp;
  const int part = place_of.part;
  const device uchar* weight = part == 0   ? weight0
                               : part == 1 ? weight1
                               : part == 2 ? weight2
                                           : weight3;
  const StripsOf strips = {
      weight + place_of.at_strip,
      is_pair ? weight1 + place_of.at_strip : weight + place_of.at_strip + params.strip_bytes,
      ulong(is_pair ? 1 : 2) * params.strip_bytes,
      is_pair ? 2 * place_of.count : place_of.count};
  const RowsOf<T> rows = {x + place_of.head * params.x_head_stride, ulong(params.x_stride),
                          kIsListed ? list : nullptr, tile.first, tile.count};
  const int simdgroup = int(thread_index) / kSimdWidth;
  const int first_row = simdgroup / 2 * (8 * kTiles);
  const int first_output = simdgroup % 2 * (8 * kTiles);

  float total[kTiles][kTiles][2];
  ROLLED
  for (int p = 0; p < kKParts; ++p) {
    TileSums sums;
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int h = 0; h < kTiles; ++h)
        sums.of[t][h] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int input = p * kUnitInputs; input < params.cols; input += kKParts * kUnitInputs) {
      threadgroup_barrier(mem_flags::mem_threadgroup);  // the unit before has been read
      copy_rows(rows, input, params.cols, row_unit, thread_index);
      copy_weights(strips, input, params.padded_cols, weight_unit, thread_index);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      UNROLL
      for (int col = 0; col < kUnitInputs; col += kTileInputs) {
        if (input + col >= params.cols) continue;
        add_tile(row_unit + first_row * kPitch, weight_unit + first_output * kPitch, col, sums);
      }
    }
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int h = 0; h < kTiles; ++h) {
        UNROLL
        for (int i = 0; i < 2; ++i) {
          const float sum = sums.of[t][h].thread_elements()[i];
          total[t][h][i] = p == 0 ? sum : total[t][h][i] + sum;
        }
      }
    }
  }

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
  const MatrixLane own = matrix_lane(ushort(thread_index % kSimdWidth));
  UNROLL
  for (int h = 0; h < kTiles; ++h) {
    if (is_pair && h >= 2) continue;
    const int in_group = simdgroup % 2 * (is_pair ? 1 : 2) + h / 2;
    if (in_group >= place_of.count) continue;
    const int strip = place_of.first_strip + in_group;
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int i = 0; i < 2; ++i) {
        const int row = first_row + 8 * t + own.row;
        const int n = strip * kUnitRows + h % 2 * 8 + own.pair * 2 + i;
        if (row >= tile.count || n >= place_of.layer.outputs) continue;
        const float partner = is_pair ? total[t][h % 2 + 2][i] : 0.0f;
        write_result(results, params, row, n, total[t][h][i], partner);
      }
    }
  }
}

// integer_matrix.metal - products of many rows with quantised weights, in whole numbers.
//
// A threadgroup of 4 simdgroups computes 32 rows of up to 4 strips (16 outputs each), one per simdgroup: strips
// of one layer, or as many of a gate as of up. The matrix unit multiplies codes (A, 8 outputs by 8
// inputs) and rows (B, 8 inputs by 8 rows) as whole numbers in half; their sums are exact in float, so
// neither the unit's order nor its rounding matters. After each group of inputs, the sums are scaled and
// added in ascending order, as docs/arithmetic.md defines: the bits are those of integer_vector.metal.
//
// Codes go from memory to the matrix without passing through threadgroup memory, which holds the rows:
// 10 KiB. Limit: the matrix unit.
#include <metal_simdgroup_matrix>

#include "kernels/metal/shaders/code_words.msl"
#include "kernels/metal/shaders/whole_rows.msl"

constant constexpr int kTileRows = 32;
constant constexpr int kRowTiles = kTileRows / 8;
constant constexpr int kSlabUnits = 2;                           // units between barriers
constant constexpr int kPitch = kSlabUnits * kUnitInputs + 8;    // 8: rows start in different banks
constant constexpr int kEach = 16;                               // inputs that a thread rounds
constant constexpr int kRowLanes = kUnitInputs / kEach;

// Results of a simdgroup: row tiles of 8 outputs by 8 rows, for both halves of a strip.
struct TileSums {
  float2 of[2][kRowTiles];
};

// Which elements of a matrix this lane holds: (row, col) and (row, col + 1).
struct Fragment {
  int row;
  int col;
};

// numbers: 64 floats for each simdgroup. Metal does not specify the lanes' elements, so they are read.
inline Fragment own_fragment(threadgroup float* numbers, ushort lane) {
  numbers[lane] = float(lane);
  numbers[lane + 32] = float(lane + 32);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_matrix<float, 8, 8> places;
  simdgroup_load(places, numbers, 8);
  const int first = int(places.thread_elements()[0]);
  return {first / 8, first % 8};
}

// The codes of outputs 8 `part` to 8 `part` + 7 of a strip's unit.
struct FragmentCodes {
  uint words[8];
  HighPlane high;
  int output;
};

inline FragmentCodes load_fragments(const device uchar* unit, int part, Fragment own) {
  FragmentCodes codes;
  codes.output = 8 * part + own.row;
  codes.high = high_plane(unit, codes.output);
  UNROLL
  for (int i = 0; i < 8; ++i) {
    if (i < lines_of_unit() / 2) codes.words[i] = word_of(unit, 2 * i + own.col / 4, codes.output);
  }
  return codes;
}

// Inputs 8 k to 8 k + 7.
inline simdgroup_matrix<half, 8, 8> fragment_of(thread const FragmentCodes& codes, int k,
                                                Fragment own) {
  const uint word = codes.words[k % (lines_of_unit() / 2)];
  const float4 four =
      whole_numbers(codes_of_quad(word, codes.high, 2 * k + own.col / 4, codes.output));
  simdgroup_matrix<half, 8, 8> fragment;
  fragment.thread_elements()[0] = half(own.col % 4 == 0 ? four.x : four.z);
  fragment.thread_elements()[1] = half(own.col % 4 == 0 ? four.y : four.w);
  return fragment;
}

template <typename T, typename U, typename B, int Groups>
[[kernel, max_total_threads_per_threadgroup(kKParts * 32)]] void integer_matrix(
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
  threadgroup half4 whole[kTileRows * kPitch / 4];
  threadgroup float row_scales[kSlabUnits * kTileRows];
  threadgroup float row_sums[kSlabUnits * Groups * kTileRows];

  const TilePlace tile =
      tile_place(kHasTiles ? tiles : nullptr, int(place.y), kTileRows, params.rows);
  if (tile.count == 0) return;
  const StripPlace strips = strip_place(params, int(place.x), tile.expert);
  const bool is_pair = kGate == kGateAndUp;
  const int part = strips.part;
  const device uchar* weight = part == 0   ? weight0
                               : part == 1 ? weight1
                               : part == 2 ? weight2
                                           : weight3;
  const int simdgroup = thread_index / kSimdWidth;
  const ushort lane = thread_index % kSimdWidth;
  // Of a pair, simdgroups 2 and 3 have the strips of up.
  const bool is_up = is_pair && simdgroup >= kKParts / 2;
  const int own_strip = is_pair ? simdgroup % (kKParts / 2) : simdgroup;
  const bool has_strip = own_strip < strips.count;
  const device uchar* strip = (is_up ? weight1 : weight) + strips.at_strip +
                              ulong(has_strip ? own_strip : 0) * params.strip_bytes;
  const RowsOf<T> rows = {x + strips.head * params.x_head_stride, ulong(params.x_stride),
                          kIsListed ? list : nullptr, tile.first, tile.count};
  const Fragment own = own_fragment((threadgroup float*)whole + 64 * simdgroup, lane);

  TileSums added, rest;
  UNROLL
  for (int h = 0; h < 2; ++h) {
    UNROLL
    for (int t = 0; t < kRowTiles; ++t) added.of[h][t] = rest.of[h][t] = float2(0.0f);
  }
  for (int first = 0; first * kUnitInputs < params.cols; first += kSlabUnits) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    UNROLL
    for (int pass = 0; pass < kSlabUnits; ++pass) {
      const int row = int(thread_index) / kRowLanes;
      const int row_lane = int(thread_index) % kRowLanes;
      const bool is_there = row < tile.count;
      float scale;
      const float sum = write_whole<kEach, Groups>(
          row_of(rows, is_there ? row : 0), (first + pass) * kUnitInputs, params.cols, is_there,
          whole + (row * kPitch + pass * kUnitInputs) / 4, ushort(row_lane), scale);
      if (row_lane == 0) row_scales[pass * kTileRows + row] = scale;
      const int input = row_lane * kEach;
      if (input % (kUnitInputs / Groups) == 0)
        row_sums[(pass * Groups + input * Groups / kUnitInputs) * kTileRows + row] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int pass = 0; pass < kSlabUnits; ++pass) {
      const int unit = first + pass;
      if (!has_strip || unit * kUnitInputs >= params.cols) break;
      const UnitPlace at = unit_place(strip, unit);
      const FragmentCodes codes[2] = {load_fragments(at.codes, 0, own),
                                      load_fragments(at.codes, 1, own)};
      const threadgroup half* numbers = (threadgroup half*)whole + pass * kUnitInputs;
      UNROLL
      for (int g = 0; g < Groups; ++g) {
        if (unit * kUnitInputs + g * (kUnitInputs / Groups) >= params.cols) break;
        simdgroup_matrix<float, 8, 8> sums[2][kRowTiles];
        UNROLL
        for (int h = 0; h < 2; ++h) {
          UNROLL
          for (int t = 0; t < kRowTiles; ++t)
            sums[h][t] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
        UNROLL
        for (int step = 0; step < 8 / Groups; ++step) {
          const int k = g * (8 / Groups) + step;
          const simdgroup_matrix<half, 8, 8> a[2] = {fragment_of(codes[0], k, own),
                                                     fragment_of(codes[1], k, own)};
          UNROLL
          for (int t = 0; t < kRowTiles; ++t) {
            simdgroup_matrix<half, 8, 8> b;
            simdgroup_load(b, numbers + 8 * t * kPitch + 8 * k, kPitch, ulong2(0, 0), true);
            UNROLL
            for (int h = 0; h < 2; ++h)
              simdgroup_multiply_accumulate(sums[h][t], a[h], b, sums[h][t]);
          }
        }
        const float2 scales[2] = {
            scale_and_rest(at.block, at.first_group + g, codes[0].output),
            scale_and_rest(at.block, at.first_group + g, codes[1].output)};
        UNROLL
        for (int t = 0; t < kRowTiles; ++t) {
          const int row = 8 * t + own.col;
          const float2 xs = float2(row_scales[pass * kTileRows + row],
                                   row_scales[pass * kTileRows + row + 1]);
          const threadgroup float* x_sums = row_sums + (pass * Groups + g) * kTileRows + row;
          const float2 x_sum = float2(x_sums[0], x_sums[1]);
          UNROLL
          for (int h = 0; h < 2; ++h) {
            const float2 sum = float2(sums[h][t].thread_elements()[0],
                                      sums[h][t].thread_elements()[1]) * xs;
            added.of[h][t] =
                fma(fma(float2(missing_offset()), x_sum, sum), float2(scales[h].x), added.of[h][t]);
            if (has_bias_of_group())
              rest.of[h][t] = fma(float2(scales[h].y), x_sum, rest.of[h][t]);
          }
        }
      }
    }
  }
  if (has_bias_of_group()) {
    UNROLL
    for (int h = 0; h < 2; ++h) {
      UNROLL
      for (int t = 0; t < kRowTiles; ++t) added.of[h][t] += rest.of[h][t];
    }
  }
  // [2 strips of up][16 outputs][32 rows], in place of the rows' numbers.
  threadgroup float* of_up = (threadgroup float*)whole + own_strip * kUnitRows * kTileRows;
  if (is_pair) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    UNROLL
    for (int h = 0; h < 2; ++h) {
      UNROLL
      for (int t = 0; t < kRowTiles; ++t) {
        const int at = (8 * h + own.row) * kTileRows + 8 * t + own.col;
        if (is_up) of_up[at] = added.of[h][t].x;
        if (is_up) of_up[at + 1] = added.of[h][t].y;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (is_up || !has_strip) return;
  const Results<U, B> results = {
      kHasBias ? (part == 0 ? bias0 : part == 1 ? bias1 : part == 2 ? bias2 : bias3) : nullptr,
      kHasBias ? bias1 : nullptr,
      kHasResidual ? residual : nullptr,
      kHasUp ? up : nullptr,
      kHasLora ? lora : nullptr,
      kHasLora ? lora_places : nullptr,
      out,
      tile,
      strips};
  UNROLL
  for (int h = 0; h < 2; ++h) {
    const int in_strip = 8 * h + own.row;
    const int n = (strips.first_strip + own_strip) * kUnitRows + in_strip;
    if (n >= strips.layer.outputs) continue;
    UNROLL
    for (int t = 0; t < kRowTiles; ++t) {
      UNROLL
      for (int e = 0; e < 2; ++e) {
        const int row = 8 * t + own.col + e;
        if (row >= tile.count) continue;
        const float partner = is_pair ? of_up[in_strip * kTileRows + row] : 0.0f;
        write_result(results, params, row, n, added.of[h][t][e], partner);
      }
    }
  }
}

// integer_vector.metal - products of up to eight rows with quantised weights, in whole numbers.
//
// A threadgroup of 4 simdgroups computes Rows rows of up to Strips strips (16 outputs each) of one layer, or
// of half as many strips of a gate and of up. It rounds x once for all of them. A lane takes one output of a unit (64 inputs): it multiplies
// codes and rows as whole numbers, whose sums are exact in float. Simdgroup p takes units 2 p and
// 2 p + 1 of every eight. Then one lane per result adds the groups' sums in ascending order, as
// docs/arithmetic.md defines: the bits do not depend on the number of rows and are those of
// integer_matrix.metal and of the CPU.
//
// Memory: 6 KiB (two rows) to 29 KiB (eight rows, four groups per unit). Limit: bandwidth; each weight is read
// once. Operations per weight of 4 bits: docs/metal.md.
#include "kernels/metal/shaders/code_words.msl"
#include "kernels/metal/shaders/whole_rows.msl"

constant constexpr int kTurnUnits = 2 * kKParts;  // units that the simdgroups process at once

// Strips that a lane computes at once, with one read of x.
template <int Strips>
constexpr int strips_at_once() {
  return Strips < 2 ? Strips : 2;
}

// The sums of a lane's unit.
template <int Rows, int Groups, int Strips>
struct LaneSums {
  float of[Strips][Rows][Groups];
};

// q: the rows' numbers [Rows][2][16] of the simdgroup's two units.
template <int Rows, int Groups, int Strips>
inline void add_unit(thread const UnitPlace (&units)[Strips], threadgroup const half4* q, int side,
                     int output, thread LaneSums<Rows, Groups, Strips>& sums) {
  HighPlane high[Strips];
  UNROLL
  for (int s = 0; s < Strips; ++s) high[s] = high_plane(units[s].codes, output);
  UNROLL
  for (int line = 0; line < 16; ++line) {
    if (line >= lines_of_unit()) break;
    uint words[Strips];
    UNROLL
    for (int s = 0; s < Strips; ++s) words[s] = word_of(units[s].codes, line, output);
    UNROLL
    for (int field = 0; field < 4; ++field) {
      if (field >= fields_of_word()) break;
      const int quad = field * lines_of_unit() + line;
      float4 codes[Strips];
      UNROLL
      for (int s = 0; s < Strips; ++s)
        codes[s] = whole_numbers(codes_of_quad(words[s], high[s], quad, output));
      UNROLL
      for (int r = 0; r < Rows; ++r) {
        const half4 x = q[(2 * r + side) * 16 + quad];
        UNROLL
        for (int s = 0; s < Strips; ++s) {
          float sum = sums.of[s][r][quad * Groups / 16];
          sum = fma(codes[s].x, float(x.x), sum);
          sum = fma(codes[s].y, float(x.y), sum);
          sum = fma(codes[s].z, float(x.z), sum);
          sums.of[s][r][quad * Groups / 16] = fma(codes[s].w, float(x.w), sum);
        }
      }
    }
  }
}

template <typename T, typename U, typename B, int Rows, int Groups, int Strips>
[[kernel, max_total_threads_per_threadgroup(kKParts * 32)]] void integer_vector(
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
  // More units between barriers for fewer rows.
  constexpr int kTurns = Rows * Groups >= 4 ? 1 : 4 / (Rows * Groups);
  constexpr int kUnits = kTurns * kTurnUnits;
  constexpr int kSlots = kUnits * Groups;
  // Inputs that a lane rounds at once, so that few shuffles are needed.
  constexpr int kEach = Rows >= 4 ? 16 : 4 * Rows;
  constexpr int kLanes = kUnitInputs / kEach;          // per row and unit
  constexpr int kPairs = kSimdWidth / kLanes;          // of a row and a unit, at once
  constexpr int kPasses = (2 * Rows + kPairs - 1) / kPairs;
  threadgroup half4 whole[kKParts * 2 * Rows * kUnitInputs / 4];
  threadgroup float row_scales[kUnits * Rows];
  threadgroup float row_sums[kSlots * Rows];
  constexpr int kAtOnce = strips_at_once<Strips>();
  static_assert(Strips == kAtOnce || kTurns == 1, "whole[] holds the rows of one turn");
  threadgroup float sums[kAtOnce * kSlots * Rows * kUnitRows];
  threadgroup float2 scales[kAtOnce * kSlots * kUnitRows];

  const TilePlace tile = tile_place(kHasTiles ? tiles : nullptr, int(place.y), Rows, params.rows);
  if (tile.count == 0) return;
  const StripPlace strips = strip_place(params, int(place.x), tile.expert);
  const bool is_pair = kGate == kGateAndUp;
  const int part = strips.part;
  const device uchar* weight = part == 0   ? weight0
                               : part == 1 ? weight1
                               : part == 2 ? weight2
                                           : weight3;
  // Of a pair, the second half are the strips of up. A strip past the end is read again, not written.
  const device uchar* of_strip[Strips];
  UNROLL
  for (int s = 0; s < Strips; ++s) {
    const int half_strips = Strips > 1 ? Strips / 2 : 1;
    const int at = is_pair ? s % half_strips : s;
    const ulong offset = ulong(min(at, strips.count - 1)) * params.strip_bytes + strips.at_strip;
    of_strip[s] = (is_pair && s >= half_strips ? weight1 : weight) + offset;
  }
  const RowsOf<T> rows = {x + strips.head * params.x_head_stride, ulong(params.x_stride),
                          kIsListed ? list : nullptr, tile.first, tile.count};
  const int simdgroup = thread_index / kSimdWidth;
  const int lane = thread_index % kSimdWidth;
  const int side = lane / kUnitRows, output = lane % kUnitRows;
  threadgroup half4* own = whole + simdgroup * 2 * Rows * kUnitInputs / 4;

  // A thread's results: row thread_index / 16, output thread_index % 16 of every strip.
  float added[Strips], rest[Strips];
  UNROLL
  for (int s = 0; s < Strips; ++s) added[s] = rest[s] = 0.0f;
  const int row = thread_index / kUnitRows, n = thread_index % kUnitRows;
  for (int first = 0; first * kUnitInputs < params.cols; first += kUnits) {
    const int left = (params.cols - first * kUnitInputs) * Groups / kUnitInputs;
    UNROLL
    for (int begin = 0; begin < Strips; begin += kAtOnce) {
      if (first > 0 || begin > 0) threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int turn = 0; turn < kTurns; ++turn) {
        const int turn_unit = turn * kTurnUnits + 2 * simdgroup;  // of the slab
        if ((first + turn_unit) * kUnitInputs >= params.cols) break;
        // With several passes over the strips there is one turn, whose rows stay.
        if (begin == 0) {
          if (turn > 0) simdgroup_barrier(mem_flags::mem_threadgroup);
          UNROLL
          for (int pass = 0; pass < kPasses; ++pass) {
            const int pair = pass * kPairs + lane / kLanes;
            const int pair_row = pair / 2, unit = turn_unit + pair % 2;
            const bool is_there = pair_row < tile.count;
            float scale;
            const float sum = write_whole<kEach, Groups>(
                row_of(rows, is_there ? pair_row : 0), (first + unit) * kUnitInputs, params.cols,
                is_there, own + pair * kUnitInputs / 4, ushort(lane % kLanes), scale);
            const int input = lane % kLanes * kEach;
            if (input == 0) row_scales[unit * Rows + pair_row] = scale;
            if (input % (kUnitInputs / Groups) == 0)
              row_sums[(unit * Groups + input * Groups / kUnitInputs) * Rows + pair_row] = sum;
          }
          simdgroup_barrier(mem_flags::mem_threadgroup);
        }
        const int unit = turn_unit + side;
        if ((first + unit) * kUnitInputs >= params.cols) continue;
        UnitPlace places[kAtOnce];
        LaneSums<Rows, Groups, kAtOnce> of_lane;
        UNROLL
        for (int s = 0; s < kAtOnce; ++s) {
          places[s] = unit_place(of_strip[begin + s], first + unit);
          UNROLL
          for (int g = 0; g < Groups; ++g) {
            scales[(s * kSlots + unit * Groups + g) * kUnitRows + output] =
                scale_and_rest(places[s].block, places[s].first_group + g, output);
            UNROLL
            for (int r = 0; r < Rows; ++r) of_lane.of[s][r][g] = 0.0f;
          }
        }
        add_unit(places, own, side, output, of_lane);
        UNROLL
        for (int s = 0; s < kAtOnce; ++s) {
          UNROLL
          for (int g = 0; g < Groups; ++g) {
            UNROLL
            for (int r = 0; r < Rows; ++r)
              sums[((s * kSlots + unit * Groups + g) * Rows + r) * kUnitRows + output] =
                  of_lane.of[s][r][g];
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const int slots = row < Rows ? min(kSlots, left) : 0;
      const threadgroup float* of_row = sums + row * kUnitRows + n;
      UNROLL
      for (int slot = 0; slot < kSlots; ++slot) {
        if (slot >= slots) break;
        const float xs = row_scales[slot / Groups * Rows + row];
        const float x_sum = row_sums[slot * Rows + row];
        UNROLL
        for (int s = 0; s < kAtOnce; ++s) {
          const int at = s * kSlots + slot;
          const float2 scale = scales[at * kUnitRows + n];
          const float sum = of_row[at * Rows * kUnitRows] * xs;
          added[begin + s] =
              fma(fma(missing_offset(), x_sum, sum), scale.x, added[begin + s]);
          if (has_bias_of_group()) rest[begin + s] = fma(scale.y, x_sum, rest[begin + s]);
        }
      }
    }
  }
  if (row >= tile.count) return;
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
  for (int s = 0; s < Strips; ++s) {
    if (s >= strips.count) break;
    const int of_layer = (strips.first_strip + s) * kUnitRows + n;
    if (of_layer >= strips.layer.outputs) break;
    const int partner = is_pair && Strips > 1 ? s + Strips / 2 : s;
    write_result(results, params, row, of_layer,
                 has_bias_of_group() ? added[s] + rest[s] : added[s],
                 has_bias_of_group() ? added[partner] + rest[partner] : added[partner]);
  }
}

// lora_expand.metal - scale * B (A x) for the rows with a LoRA adapter, which the kernels of products add.
//
// A threadgroup computes up to 32 rows of one slot and a strip of 16 outputs: thread t has output t % 16
// of rows t / 16, t / 16 + 8, ... Every result is one chain of fused multiply-adds over the ranks in
// ascending order, so other rows do not matter. Grid: x strips, y tiles of rows (linear_params.h).
//
// Memory: none. Limit: bandwidth, B is read once per tile.
#include "kernels/metal/lora_params.h"
#include "kernels/metal/shaders/numbers.msl"

using namespace octavo::metal;

// inner: [rows by slot, inner_stride]; b: per slot a header, then [strip][rank][16]
template <typename T>
[[kernel, max_total_threads_per_threadgroup(kLoraThreads)]] void lora_expand(
    const device float* inner [[buffer(0)]],
    const device uchar* b [[buffer(1)]],
    const device int* tiles [[buffer(2)]],
    device float* out [[buffer(3)]],
    constant LoraParams& params [[buffer(4)]],
    uint3 place [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int kRowsAtOnce = kLoraThreads / kUnitRows;
  constexpr int kPasses = kLoraTileRows / kRowsAtOnce;
  if (int(place.y) >= tiles[0]) return;
  const device int* tile = tiles + 1 + int(place.y) * kTileWords;
  const int slot = tile[0], first = tile[1], count = tile[2];
  const int lane = int(thread_index) % kUnitRows, row = int(thread_index) / kUnitRows;
  const int n = int(place.x) * kUnitRows + lane;
  if (n >= params.outputs) return;
  const device uchar* of_slot = b + ulong(slot) * params.slot_bytes;
  const int rank = *(const device int*)of_slot;
  const float scale = ((const device float*)of_slot)[1];
  const device T* weights =
      (const device T*)(of_slot + kLoraHeader) + ulong(place.x) * rank * kUnitRows + lane;
  const device float* of_rows = inner + ulong(first) * params.inner_stride + params.inner_first;
  float sums[kPasses];
  UNROLL
  for (int i = 0; i < kPasses; ++i) sums[i] = 0.0f;
  for (int r = 0; r < rank; ++r) {
    const float weight = float(weights[r * kUnitRows]);
    UNROLL
    for (int i = 0; i < kPasses; ++i) {
      const int at = row + i * kRowsAtOnce;
      if (at < count) sums[i] = fma(weight, of_rows[at * params.inner_stride + r], sums[i]);
    }
  }
  UNROLL
  for (int i = 0; i < kPasses; ++i) {
    const int at = row + i * kRowsAtOnce;
    // Adding a negative zero changes no number: an empty slot leaves the product as it is.
    if (at < count)
      out[ulong(first + at) * params.out_stride + params.out_first + n] =
          rank > 0 ? sums[i] * scale : -0.0f;
  }
}

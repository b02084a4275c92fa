// place_tokens.metal - the step before's tokens in the rows that wait for them.
//
// A thread per row. Limit: the launch itself.
#include "kernels/metal/shaders/numbers.msl"
#include "kernels/metal/sampling_params.h"

using namespace octavo::metal;

[[kernel]] void place_tokens(
    const device int* tokens [[buffer(0)]],
    const device int* sources [[buffer(1)]],
    const device int* previous [[buffer(2)]],
    device int* out [[buffer(3)]],
    constant int& count [[buffer(4)]],
    uint index [[thread_position_in_grid]]) {
  if (int(index) >= count) return;
  const int source = sources[index];
  out[index] = source < 0 ? tokens[index] : previous[source];
}

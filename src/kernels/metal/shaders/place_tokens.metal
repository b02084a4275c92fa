// place_tokens.metal - inserts the tokens of the previous step into the rows that depend on them.
//
// One thread per row. Limit: launch overhead.
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

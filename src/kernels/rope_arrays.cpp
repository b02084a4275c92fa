#include "kernels/rope_arrays.h"

#include "base/error.h"

namespace octavo {

void check_rope(const RopeArrays& rope, int tokens, int head_dim) {
  const mx::array& positions = rope.positions;
  const mx::array& frequencies = rope.inverse_frequencies;
  OCTAVO_CHECK(positions.dtype() == mx::int32 && positions.ndim() >= 1 && positions.ndim() <= 2);
  OCTAVO_CHECK(rope.tokens() == tokens);
  OCTAVO_CHECK(frequencies.dtype() == mx::float32 && frequencies.ndim() == 1);
  OCTAVO_CHECK(2 * rope.pairs() <= head_dim);
  if (!rope.axes) return;
  OCTAVO_CHECK(positions.ndim() == 2);
  OCTAVO_CHECK(rope.axes->dtype() == mx::int32 && rope.axes->shape() == frequencies.shape());
}

void add_rope_inputs(const RopeArrays& rope, std::vector<mx::array>& inputs) {
  inputs.push_back(rope.positions);
  inputs.push_back(rope.inverse_frequencies);
  if (rope.axes) inputs.push_back(*rope.axes);
}

RopeArrays rope_of_inputs(std::span<const mx::array> inputs) {
  RopeArrays rope{inputs[0], inputs[1]};
  if (inputs.size() > 2) rope.axes = inputs[2];
  return rope;
}

cpu::RopeJob rope_job(const RopeArrays& rope, float magnitude) {
  cpu::RopeJob job{.positions = rope.positions.data<int32_t>(),
                   .inverse_frequencies = rope.inverse_frequencies.data<float>(),
                   .pairs = rope.pairs(),
                   .magnitude = magnitude};
  if (!rope.axes) return job;
  job.axes = rope.axes->data<int32_t>();
  job.axis_stride = rope.tokens();
  job.axis_count = rope.positions.shape(0);
  return job;
}

}  // namespace octavo

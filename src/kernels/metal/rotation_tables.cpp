#include "kernels/metal/rotation_tables.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace octavo::metal {
namespace {

mx::array make_table(const RopeArrays& rope, float magnitude, Encoder& encoder) {
  const int tokens = rope.tokens();
  const int pairs = rope.pairs();
  cpu::Rotations rotations;
  rotations.fill(rope_job(rope, magnitude), 0, tokens);
  mx::array table = encoder.temporary({tokens, 2, pairs}, mx::float32);
  auto* to = table.data<float>();
  for (ptrdiff_t first = 0; first < ptrdiff_t{tokens} * pairs; first += pairs) {
    to = std::copy_n(rotations.cosine.begin() + first, pairs, to);
    to = std::copy_n(rotations.sine.begin() + first, pairs, to);
  }
  return table;
}

}  // namespace

const mx::array& RotationTables::find(const RopeArrays& rope, float magnitude, Encoder& encoder) {
  OCTAVO_CHECK(rope.positions.is_available() && rope.inverse_frequencies.is_available());
  const std::span frequencies(rope.inverse_frequencies.data<float>(),
                              rope.inverse_frequencies.size());
  std::span<const int32_t> axes;
  if (rope.axes) {
    OCTAVO_CHECK(rope.axes->is_available());
    axes = {rope.axes->data<int32_t>(), rope.axes->size()};
  }
  for (const Entry& entry : entries_) {
    if (entry.magnitude != magnitude || !std::ranges::equal(entry.frequencies, frequencies) ||
        entry.positions.data<int32_t>() != rope.positions.data<int32_t>() ||
        !std::ranges::equal(entry.axes, axes))
      continue;
    encoder.keep(entry.table);
    return entry.table;
  }
  entries_.push_back({rope.positions,
                      {frequencies.begin(), frequencies.end()},
                      {axes.begin(), axes.end()},
                      magnitude,
                      make_table(rope, magnitude, encoder)});
  return entries_.back().table;
}

}  // namespace octavo::metal

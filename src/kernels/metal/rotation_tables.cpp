#include "kernels/metal/rotation_tables.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "kernels/cpu/token_rows.h"

namespace octavo::metal {
namespace {

mx::array make_table(const mx::array& positions, std::span<const float> frequencies,
                     float magnitude, Encoder& encoder) {
  const auto tokens = static_cast<int>(positions.size());
  const auto pairs = static_cast<int>(frequencies.size());
  cpu::Rotations rotations;
  rotations.fill({.positions = positions.data<int32_t>(),
                  .inverse_frequencies = frequencies.data(),
                  .pairs = pairs,
                  .magnitude = magnitude},
                 0, tokens);
  mx::array table = encoder.temporary({tokens, 2, pairs}, mx::float32);
  auto* to = table.data<float>();
  for (ptrdiff_t first = 0; first < ptrdiff_t{tokens} * pairs; first += pairs) {
    to = std::copy_n(rotations.cosine.begin() + first, pairs, to);
    to = std::copy_n(rotations.sine.begin() + first, pairs, to);
  }
  return table;
}

}  // namespace

const mx::array& RotationTables::find(const mx::array& positions,
                                      const mx::array& inverse_frequencies, float magnitude,
                                      Encoder& encoder) {
  OCTAVO_CHECK(positions.is_available() && inverse_frequencies.is_available());
  const std::span frequencies(inverse_frequencies.data<float>(), inverse_frequencies.size());
  for (const Entry& entry : entries_) {
    if (entry.magnitude != magnitude || !std::ranges::equal(entry.frequencies, frequencies))
      continue;
    encoder.keep(entry.table);
    return entry.table;
  }
  entries_.push_back({{frequencies.begin(), frequencies.end()},
                      magnitude,
                      make_table(positions, frequencies, magnitude, encoder)});
  return entries_.back().table;
}

}  // namespace octavo::metal

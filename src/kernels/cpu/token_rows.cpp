#include "kernels/cpu/token_rows.h"

#include "base/error.h"
#include "base/portable_math.h"
#include "kernels/cpu/clones.h"

namespace octavo::cpu {
namespace {

// `count` angles of at most kLargestAngle.
OCTAVO_CLONES void turn(const double* angles, int64_t count, float magnitude, float* cosine,
                        float* sine) {
  for (int64_t i = 0; i < count; ++i) {
    const SineCosine of = sine_cosine(angles[i]);
    cosine[i] = static_cast<float>(of.cosine) * magnitude;
    sine[i] = static_cast<float>(of.sine) * magnitude;
  }
}

// The angles of one row, each by the position on its pair's axis.
void fill_angles_of_axes(const RopeJob& rope, int64_t token, std::vector<double>& angles) {
  for (size_t i = 0; i < angles.size(); ++i) {
    const int64_t axis = rope.axes[i];
    OCTAVO_CHECK(axis >= 0 && axis < rope.axis_count);
    const auto position = static_cast<float>(rope.positions[axis * rope.axis_stride + token]);
    angles[i] = bounded_angle(static_cast<double>(position * rope.inverse_frequencies[i]));
  }
}

void fill_angles(const RopeJob& rope, int64_t token, std::vector<double>& angles) {
  const auto position = static_cast<float>(rope.positions[token]);
  for (size_t i = 0; i < angles.size(); ++i)
    angles[i] = bounded_angle(static_cast<double>(position * rope.inverse_frequencies[i]));
}

}  // namespace

void Rotations::fill(const RopeJob& rope, int64_t begin, int64_t end) {
  const auto pairs = static_cast<size_t>(rope.pairs);
  cosine.resize(static_cast<size_t>(end - begin) * pairs);
  sine.resize(cosine.size());
  std::vector<double> angles(pairs);
  for (int64_t t = begin; t < end; ++t) {
    rope.axes == nullptr ? fill_angles(rope, t, angles) : fill_angles_of_axes(rope, t, angles);
    const size_t row = static_cast<size_t>(t - begin) * pairs;
    turn(angles.data(), rope.pairs, rope.magnitude, cosine.data() + row, sine.data() + row);
  }
}

std::vector<TokenSlot> token_slots(const PagedBatch& batch, int64_t tokens) {
  const int64_t block = batch.geometry.block_tokens;
  std::vector<TokenSlot> slots;
  slots.reserve(static_cast<size_t>(tokens));
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t count = batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s];
    const int64_t start = batch.context_lens[s] - count;
    OCTAVO_CHECK(start >= 0);
    for (int64_t position = start; position < start + count; ++position) {
      const int64_t column = position / block;
      OCTAVO_CHECK(column < batch.table_columns);
      const int64_t page = batch.block_tables[s * batch.table_columns + column];
      OCTAVO_CHECK(page >= 0 && page < batch.page_count);
      slots.push_back({batch.pages + page * batch.page_stride, position - column * block});
    }
  }
  OCTAVO_CHECK(static_cast<int64_t>(slots.size()) == tokens);
  return slots;
}

}  // namespace octavo::cpu

#include "kernels/cpu/causal_conv.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kConvPieceElements = 8192;  // a second thread does not pay off below this
constexpr int64_t kRunChannels = 1024;        // per item: long enough for sequential reads

// A run of units of one sequence.
struct UnitRun {
  int64_t sequence;
  int64_t begin, end;
};

std::vector<UnitRun> runs_of(const StateBatch& batch) {
  const StateGeometry& g = batch.geometry;
  const int64_t step = std::max<int64_t>(1, kRunChannels / g.unit_channels);
  std::vector<UnitRun> runs;
  for (int64_t s = 0; s < batch.sequences; ++s) {
    if (batch.cu_seqlens_q[s] == batch.cu_seqlens_q[s + 1]) continue;
    for (int64_t unit = 0; unit < g.conv_units; unit += step)
      runs.push_back({s, unit, std::min<int64_t>(unit + step, g.conv_units)});
  }
  return runs;
}

// Copies the state before writing any of it, because it may be written in place.
void convolve(const StateBatch& batch, const ConvJob& job, const UnitRun& run, int64_t part) {
  const StateGeometry& g = batch.geometry;
  const auto unit_row = static_cast<size_t>(g.unit_channels) * size_of(g.conv_dtype);
  const size_t row = unit_row * static_cast<size_t>(run.end - run.begin);
  const auto past_rows = static_cast<size_t>(job.past_rows);
  std::byte* past = scratch(Scratch::kConv, static_cast<int64_t>(past_rows * row));
  for (int64_t unit = run.begin; unit < run.end; ++unit) {
    const std::byte* from = batch.unit(run.sequence, unit, part).from;
    std::byte* to = past + static_cast<size_t>(unit - run.begin) * unit_row;
    for (size_t r = 0; r < past_rows; ++r) {
      if (from == nullptr) {
        std::memset(to + r * row, 0, unit_row);
      } else {
        std::memcpy(to + r * row, from + r * unit_row, unit_row);
      }
    }
  }
  const int64_t row_begin = batch.part_begin(run.sequence, part);
  const ConvItem item{
      .job = &job,
      .row_begin = row_begin,
      .row_end = batch.part_end(run.sequence, part),
      .channel_begin = run.begin * g.unit_channels,
      .channel_end = run.end * g.unit_channels,
      .fresh = job.x + row_begin * job.x_stride + run.begin * static_cast<int64_t>(unit_row),
      .past = past,
      .past_stride = static_cast<int64_t>(row)};
  kernels().conv_rows(item);
  const int64_t first_kept = item.row_end - item.row_begin - job.past_rows;
  for (int64_t unit = run.begin; unit < run.end; ++unit) {
    std::byte* to = batch.unit(run.sequence, unit, part).to;
    for (size_t r = 0; r < past_rows; ++r) {
      const std::byte* kept = conv_input(item, first_kept + static_cast<int64_t>(r));
      std::memcpy(to + r * unit_row, kept + static_cast<size_t>(unit - run.begin) * unit_row,
                  unit_row);
    }
  }
}

}  // namespace

void causal_conv(const StateBatch& batch, const ConvJob& job) {
  const std::vector<UnitRun> runs = runs_of(batch);
  const int64_t elements = batch.cu_seqlens_q[batch.sequences] * job.channels;
  const auto count = static_cast<int64_t>(runs.size());
  // The average number of runs per piece.
  const int64_t grain =
      std::max<int64_t>(1, count * kConvPieceElements / std::max<int64_t>(1, elements));
  compute_pool().parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    prepare_thread();
    for (int64_t i = begin; i < end; ++i) {
      const UnitRun& run = runs[static_cast<size_t>(i)];
      const int64_t parts = batch.parts(run.sequence);
      for (int64_t part = 0; part < parts; ++part) convolve(batch, job, run, part);
    }
  });
}

}  // namespace octavo::cpu

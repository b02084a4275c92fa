#include "kernels/cpu/causal_conv.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kPieceElements = 8192;  // below this a second thread costs more than it brings

std::vector<ConvItem> items_of(const StateBatch& batch, const ConvJob& job) {
  const StateGeometry& g = batch.geometry;
  std::vector<ConvItem> items;
  items.reserve(static_cast<size_t>(batch.sequences * g.conv_units));
  for (int64_t s = 0; s < batch.sequences; ++s) {
    ConvItem item;
    item.job = &job;
    item.row_begin = batch.cu_seqlens_q[s];
    item.row_end = batch.cu_seqlens_q[s + 1];
    if (item.row_begin == item.row_end) continue;
    for (int64_t unit = 0; unit < g.conv_units; ++unit) {
      const StateBlock block = batch.unit(s, unit);
      item.from = block.from;
      item.to = block.to;
      item.channel_begin = unit * g.unit_channels;
      item.channel_end = item.channel_begin + g.unit_channels;
      items.push_back(item);
    }
  }
  return items;
}

}  // namespace

void causal_conv(const StateBatch& batch, const ConvJob& job) {
  const KernelTable& table = kernels();
  const std::vector<ConvItem> items = items_of(batch, job);
  const int64_t rows = batch.cu_seqlens_q[batch.sequences];
  const int64_t elements = rows * job.channels;
  const auto count = static_cast<int64_t>(items.size());
  // As many items as make a piece, on average.
  const int64_t grain =
      std::max<int64_t>(1, count * kPieceElements / std::max<int64_t>(1, elements));
  const auto unit_bytes = static_cast<int64_t>(batch.geometry.unit_bytes());
  compute_pool().parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    prepare_thread();
    std::byte* memory = scratch(Scratch::kConv, unit_bytes);
    for (int64_t i = begin; i < end; ++i) table.conv_unit(items[static_cast<size_t>(i)], memory);
  });
}

}  // namespace octavo::cpu

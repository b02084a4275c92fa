#include "kernels/metal/paged_attention.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "kernels/cpu/page_layout.h"
#include "kernels/metal/attention_plan.h"

namespace octavo::metal {
namespace {

// Numbers that the host has made, and so can read before anything has run.
std::span<const int32_t> host_numbers(const mx::array& array) {
  OCTAVO_CHECK(array.is_available());
  return {array.data<int32_t>(), array.size()};
}

template <typename Item>
mx::array item_array(Encoder& encoder, const std::vector<Item>& items) {
  std::vector<int32_t> numbers(items.size() * sizeof(Item) / sizeof(int32_t));
  std::memcpy(numbers.data(), items.data(), items.size() * sizeof(Item));
  return encoder.temporary(numbers, mx::int32);
}

Size3 grid_of(size_t items, int32_t kv_heads) {
  return {static_cast<uint32_t>(items), static_cast<uint32_t>(kv_heads)};
}
constexpr Size3 kThreads = {kAttentionSimdgroups * 32};

}  // namespace

PageParams page_params(const PageGeometry& geometry, const mx::array& pages,
                       const mx::array& block_tables) {
  const cpu::PageLayout layout = cpu::plain_page_layout(geometry);
  return {.page_stride = pages.shape(1),
          .table_columns = block_tables.shape(1),
          .block_tokens = geometry.block_tokens,
          .head_bytes = static_cast<int32_t>(layout.head_bytes),
          .v_first = static_cast<int32_t>(layout.v_first),
          .k_scales = static_cast<int32_t>(layout.k_scales),
          .v_scales = static_cast<int32_t>(layout.v_scales)};
}

void paged_attention(Encoder& encoder, const PageGeometry& geometry, const AttentionArgs& args) {
  const std::string type = msl_type(geometry.dtype);
  const int32_t q_heads = args.q.shape(1);
  const AttentionPlan plan =
      plan_attention({.cu_seqlens_q = host_numbers(args.cu_seqlens_q),
                      .context_lens = host_numbers(args.context_lens),
                      .group = q_heads / geometry.kv_heads,
                      .kv_heads = geometry.kv_heads,
                      .window = args.window,
                      .most_tiles = widest_item(
                          geometry.k_dim, static_cast<int32_t>(octavo::size_of(geometry.dtype))),
                      .v_dim = geometry.v_dim});
  // Bounded by kMostPartialBytes.
  const auto partial_stride = static_cast<int32_t>(partial_floats(plan, geometry.v_dim));
  const mx::array partials =
      encoder.temporary({std::max(1, partial_stride * geometry.kv_heads)}, mx::float32);
  const AttentionParams params{.pages = page_params(geometry, args.pages, args.block_tables),
                               .q_heads = q_heads,
                               .kv_heads = geometry.kv_heads,
                               .window = args.window,
                               .scale = args.scale,
                               .soft_cap = args.soft_cap,
                               .partial_stride = partial_stride};
  for (const AttentionWave& wave : plan.waves) {
    Launch launch("paged_attention", {type, std::to_string(geometry.k_dim),
                                      std::to_string(geometry.v_dim), std::to_string(wave.tiles)});
    launch.constant("kInt8", geometry.format == KvFormat::kInt8)
        .constant("kHasSoftCap", args.soft_cap > 0)
        .constant("kHasWindow", args.window > 0)
        .constant("kHasSinks", args.sinks.has_value())
        .input("q", args.q)
        .input("pages", args.pages)
        .input("block_tables", args.block_tables)
        .input("items", item_array(encoder, wave.items))
        .optional_input("sinks", args.sinks)
        .output("out", args.out)
        .output("partials", partials)
        .bytes("params", params)
        .grid(grid_of(wave.items.size(), geometry.kv_heads), kThreads);
    encoder.run(launch);
  }
  if (plan.merges.empty()) return;
  Launch merge("merge_partials", {type, std::to_string(geometry.v_dim)});
  merge.constant("kHasSinks", args.sinks.has_value())
      .input("partials", partials)
      .input("items", item_array(encoder, plan.merges))
      .optional_input("sinks", args.sinks)
      .output("out", args.out)
      .bytes("params", params)
      .grid(grid_of(plan.merges.size(), geometry.kv_heads), kThreads);
  encoder.run(merge);
}

}  // namespace octavo::metal

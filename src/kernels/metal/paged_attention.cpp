#include "kernels/metal/paged_attention.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>

#include "base/error.h"
#include "kernels/cpu/page_layout.h"
#include "kernels/metal/concurrent_launches.h"
#include "kernels/metal/gpu_cores.h"

namespace octavo::metal {
namespace {

// Data created by the host, readable before any kernel has run.
std::span<const int32_t> host_numbers(const mx::array& array) {
  OCTAVO_CHECK(array.is_available());
  return {array.data<int32_t>(), array.size()};
}

Size3 grid_of(uint32_t items, int32_t kv_heads) { return {items, static_cast<uint32_t>(kv_heads)}; }
constexpr Size3 kThreads = {kAttentionSimdgroups * 32};

Launch launch_of(const AttentionPlan::Wave& wave, const PageGeometry& geometry, DType type) {
  if (wave.kernel == AttentionKernel::kDecode)
    return Launch("decode_attention", {type, geometry.k_dim, geometry.v_dim, wave.width});
  return Launch("paged_attention",
                {type, geometry.k_dim, geometry.v_dim, wave.width / kTileColumns});
}

Size3 threads_of(const AttentionPlan::Wave& wave, int32_t v_dim) {
  if (wave.kernel == AttentionKernel::kDecode) return kThreads;
  return {static_cast<uint32_t>(matrix_simdgroups(v_dim)) * 32};
}

std::atomic<bool> vector_decode_is_used = true;

}  // namespace

bool uses_vector_decode() { return vector_decode_is_used; }
void set_vector_decode(bool is_used) { vector_decode_is_used = is_used; }

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

void paged_attention(const AttentionCall& call, Encoder& encoder) {
  const PageGeometry& geometry = call.geometry;
  const DType type = geometry.dtype;
  const int32_t q_heads = call.q.shape(1);
  std::span<const int32_t> last_visible;
  if (call.last_visible) last_visible = host_numbers(*call.last_visible);
  const AttentionPlan& plan = call.plans.find(
      {.cu_seqlens_q = host_numbers(call.cu_seqlens_q),
       .context_lens = host_numbers(call.context_lens),
       .last_visible = last_visible,
       .group = q_heads / geometry.kv_heads,
       .kv_heads = geometry.kv_heads,
       .window = call.window,
       .most_tiles = widest_item(geometry.k_dim, geometry.v_dim,
                                 static_cast<int32_t>(octavo::size_of(geometry.dtype))),
       .most_vector = call.vector_decode ? widest_decode(geometry.k_dim, geometry.v_dim) : 0,
       .v_dim = geometry.v_dim,
       .gpu_cores = gpu_cores()},
      encoder);
  const mx::array partials =
      encoder.temporary({std::max(1, plan.partial_floats * geometry.kv_heads)}, mx::float32);
  const AttentionParams params{.pages = page_params(geometry, call.pages, call.block_tables),
                               .q_heads = q_heads,
                               .kv_heads = geometry.kv_heads,
                               .window = call.window,
                               .scale = call.scale,
                               .soft_cap = call.soft_cap,
                               .partial_stride = plan.partial_floats};
  // Each wave writes its own rows and partials.
  std::optional<ConcurrentLaunches> concurrent;
  if (plan.waves.size() > 1) concurrent.emplace(call.stream);
  for (const AttentionPlan::Wave& wave : plan.waves) {
    Launch launch = launch_of(wave, geometry, type);
    launch.constant("kInt8", geometry.format == KvFormat::kInt8)
        .constant("kHasSoftCap", call.soft_cap > 0)
        .constant("kHasWindow", call.window > 0)
        .constant("kHasSinks", call.sinks.has_value())
        .constant("kBlockTokens", geometry.block_tokens)
        .constant("kHasLastVisible", call.last_visible.has_value())
        .input("q", call.q)
        .input("pages", call.pages)
        .input("block_tables", call.block_tables)
        .input("items", wave.items)
        .optional_input("last_visible", call.last_visible)
        .optional_input("sinks", call.sinks)
        .output("out", call.out)
        .output("partials", partials)
        .bytes("params", params)
        .grid(grid_of(wave.count, geometry.kv_heads), threads_of(wave, geometry.v_dim));
    encoder.run(launch);
  }
  concurrent.reset();
  if (!plan.merges) return;
  Launch merge("merge_partials", {type, geometry.v_dim});
  merge.constant("kHasSinks", call.sinks.has_value())
      .input("partials", partials)
      .input("items", *plan.merges)
      .optional_input("sinks", call.sinks)
      .output("out", call.out)
      .bytes("params", params)
      .grid(grid_of(plan.merge_count, geometry.kv_heads), kThreads);
  encoder.run(merge);
}

}  // namespace octavo::metal

#include "kernels/paged_attention.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/metal/paged_attention.h"
#include "kernels/page_inputs.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: page_inputs(), q, last_visible if present, and sinks if present.
class PagedAttention : public KernelPrimitive {
 public:
  PagedAttention(mx::Stream stream, const PageGeometry& geometry, const AttentionOptions& options,
                 const BatchLayout& layout)
      : KernelPrimitive(stream),
        geometry_(geometry),
        options_(options.with_sinks(nullptr)),
        has_last_visible_(layout.last_visible.has_value()),
        has_sinks_(options.sinks.has_value()),
        plans_(layout.plans),
        vector_decode_(metal::uses_vector_decode()) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("paged_attention.cpu");
    mx::array& out = outputs[0];
    allocate(out);
    const mx::array& q = inputs[kPageInputs];
    const mx::array* sinks = sinks_of(inputs);
    const mx::array* last_visible = last_visible_of(inputs);
    const cpu::PagedAttentionArgs args{
        .batch = page_batch(inputs, geometry_),
        .q = q.data<void>(),
        .out = out.data<void>(),
        .dtype = dtype_of(out),
        .q_heads = q.shape(1),
        .options =
            options_.with_sinks<const float*>(sinks != nullptr ? sinks->data<float>() : nullptr),
        .last_visible = last_visible != nullptr ? last_visible->data<int32_t>() : nullptr,
    };
    run_on_cpu(*this, [args] { cpu::paged_attention(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const auto copy = [](const mx::array* array) {
      return array != nullptr ? std::optional(*array) : std::nullopt;
    };
    metal::paged_attention({.geometry = geometry_,
                            .plans = *plans_,
                            .pages = inputs[0],
                            .cu_seqlens_q = inputs[1],
                            .context_lens = inputs[2],
                            .block_tables = inputs[3],
                            .q = inputs[kPageInputs],
                            .last_visible = copy(last_visible_of(inputs)),
                            .sinks = copy(sinks_of(inputs)),
                            .out = outputs[0],
                            .scale = options_.scale,
                            .window = options_.window,
                            .soft_cap = options_.soft_cap,
                            .vector_decode = vector_decode_,
                            .stream = stream()},
                           encoder);
  }
  const char* name() const override { return "PagedAttention"; }

 private:
  const mx::array* last_visible_of(const std::vector<mx::array>& inputs) const {
    return has_last_visible_ ? &inputs[kPageInputs + 1] : nullptr;
  }
  const mx::array* sinks_of(const std::vector<mx::array>& inputs) const {
    return has_sinks_ ? &inputs.back() : nullptr;
  }

  PageGeometry geometry_;
  AttentionOptionsWith<std::nullptr_t> options_;  // the sinks are an input
  bool has_last_visible_;
  bool has_sinks_;
  std::shared_ptr<metal::AttentionPlans> plans_;
  bool vector_decode_;
};

}  // namespace

mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options) {
  const PageGeometry& g = pages.geometry;
  check_layout(pages, layout, block_tables);
  OCTAVO_CHECK(q.ndim() == 3 && q.shape(0) == layout.tokens() && q.shape(2) == g.k_dim);
  OCTAVO_CHECK(q.shape(1) % g.kv_heads == 0);
  OCTAVO_CHECK(dtype_of(q) == g.dtype || g.format == KvFormat::kInt8);
  OCTAVO_CHECK(!options.sinks || (options.sinks->shape() == mx::Shape{q.shape(1)} &&
                                  options.sinks->dtype() == mx::float32));
  if (pages.path == KernelPath::kReference) {
    return reference::paged_attention(q, pages, layout, block_tables, options);
  }
  std::vector<mx::array> inputs = page_inputs(pages, layout, block_tables);
  inputs.push_back(q);
  if (layout.last_visible) inputs.push_back(*layout.last_visible);
  if (options.sinks) inputs.push_back(*options.sinks);
  return mx::array({layout.tokens(), q.shape(1), g.v_dim}, q.dtype(),
                   std::make_shared<PagedAttention>(kernel_stream(), g, options, layout),
                   std::move(inputs));
}

}  // namespace octavo

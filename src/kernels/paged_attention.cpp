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

// inputs: page_inputs(), q, and sinks if present.
class PagedAttention : public KernelPrimitive {
 public:
  PagedAttention(mx::Stream stream, const PageGeometry& geometry, const AttentionOptions& options,
                 std::shared_ptr<metal::AttentionPlans> plans)
      : KernelPrimitive(stream),
        geometry_(geometry),
        options_(options.with_sinks(nullptr)),
        plans_(std::move(plans)),
        vector_decode_(metal::uses_vector_decode()) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("paged_attention.cpu");
    mx::array& out = outputs[0];
    allocate(out);
    const mx::array& q = inputs[kPageInputs];
    const bool sinks = inputs.size() > kPageInputs + 1;
    const cpu::PagedAttentionArgs args{
        .batch = page_batch(inputs, geometry_),
        .q = q.data<void>(),
        .out = out.data<void>(),
        .dtype = dtype_of(out),
        .q_heads = q.shape(1),
        .options = options_.with_sinks<const float*>(sinks ? inputs[kPageInputs + 1].data<float>()
                                                           : nullptr),
    };
    run_on_cpu(*this, [args] { cpu::paged_attention(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    std::optional<mx::array> sinks;
    if (inputs.size() > kPageInputs + 1) sinks = inputs[kPageInputs + 1];
    metal::paged_attention({.geometry = geometry_,
                            .plans = *plans_,
                            .pages = inputs[0],
                            .cu_seqlens_q = inputs[1],
                            .context_lens = inputs[2],
                            .block_tables = inputs[3],
                            .q = inputs[kPageInputs],
                            .sinks = std::move(sinks),
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
  PageGeometry geometry_;
  AttentionOptionsWith<std::nullptr_t> options_;  // the sinks are an input
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
  if (options.sinks) inputs.push_back(*options.sinks);
  return mx::array({layout.tokens(), q.shape(1), g.v_dim}, q.dtype(),
                   std::make_shared<PagedAttention>(kernel_stream(), g, options, layout.plans),
                   std::move(inputs));
}

}  // namespace octavo

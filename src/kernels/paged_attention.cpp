#include "kernels/paged_attention.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/qkv_write.h"
#include "kernels/metal/paged_attention.h"
#include "kernels/metal/qkv_write.h"
#include "kernels/page_inputs.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: page_inputs(), k, v. The output is the pages' own buffer.
class KvWrite : public KernelPrimitive {
 public:
  KvWrite(mx::Stream stream, const PageGeometry& geometry)
      : KernelPrimitive(stream), geometry_(geometry) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("kv_write.cpu");
    outputs[0].copy_shared_buffer(inputs[0]);
    const mx::array& k = inputs[kPageInputs];
    cpu::QkvWriteArgs args;
    args.batch = page_batch(inputs, geometry_);
    args.tokens = k.shape(0);
    args.k = k.data<void>();
    args.v = inputs[kPageInputs + 1].data<void>();
    args.k_stride = geometry_.kv_heads * geometry_.k_dim;
    args.v_stride = geometry_.kv_heads * geometry_.v_dim;
    args.dtype = geometry_.dtype;
    run_on_cpu(*this, [args] { cpu::qkv_write(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    outputs[0].copy_shared_buffer(inputs[0]);
    const mx::array& k = inputs[kPageInputs];
    const mx::array& v = inputs[kPageInputs + 1];
    metal::QkvArgs args;
    args.tokens = k.shape(0);
    args.dtype = geometry_.dtype;
    args.targets = page_targets(inputs, outputs[0], geometry_);
    args.k = {k, {.first = 0, .stride = geometry_.kv_heads * geometry_.k_dim}};
    args.v = {v, {.first = 0, .stride = geometry_.kv_heads * geometry_.v_dim}};
    args.k_dim = geometry_.k_dim;
    metal::qkv_write(encoder, args);
  }
  const char* name() const override { return "KvWrite"; }

 private:
  PageGeometry geometry_;
};

// inputs: page_inputs(), q, and sinks if there are any.
class PagedAttention : public KernelPrimitive {
 public:
  PagedAttention(mx::Stream stream, const PageGeometry& geometry, const AttentionOptions& options)
      : KernelPrimitive(stream),
        geometry_(geometry),
        scale_(options.scale),
        window_(options.window),
        soft_cap_(options.soft_cap) {}

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
        .scale = scale_,
        .window = window_,
        .soft_cap = soft_cap_,
        .sinks = sinks ? inputs[kPageInputs + 1].data<float>() : nullptr,
    };
    run_on_cpu(*this, [args] { cpu::paged_attention(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const bool sinks = inputs.size() > kPageInputs + 1;
    metal::paged_attention(encoder, geometry_,
                           {.pages = inputs[0],
                            .cu_seqlens_q = inputs[1],
                            .context_lens = inputs[2],
                            .block_tables = inputs[3],
                            .q = inputs[kPageInputs],
                            .sinks = sinks ? std::optional(inputs[kPageInputs + 1]) : std::nullopt,
                            .out = outputs[0],
                            .scale = scale_,
                            .window = window_,
                            .soft_cap = soft_cap_});
  }
  const char* name() const override { return "PagedAttention"; }

 private:
  PageGeometry geometry_;
  float scale_;
  int window_;
  float soft_cap_;
};

}  // namespace

KvPages kv_write(const KvPages& pages, const mx::array& k, const mx::array& v,
                 const BatchLayout& layout, const mx::array& block_tables) {
  const PageGeometry& g = pages.geometry;
  check_layout(pages, layout, block_tables);
  OCTAVO_CHECK((k.shape() == mx::Shape{layout.tokens(), g.kv_heads, g.k_dim}));
  OCTAVO_CHECK((v.shape() == mx::Shape{layout.tokens(), g.kv_heads, g.v_dim}));
  OCTAVO_CHECK(dtype_of(k) == g.dtype && dtype_of(v) == g.dtype);
  if (pages.path == KernelPath::kReference) {
    return reference::kv_write(pages, k, v, layout, block_tables);
  }
  KvPages written = pages;
  std::vector<mx::array> inputs = page_inputs(pages, layout, block_tables);
  inputs.push_back(k);
  inputs.push_back(v);
  written.bytes = mx::array(pages.bytes.shape(), mx::uint8,
                            std::make_shared<KvWrite>(kernel_stream(), g), std::move(inputs));
  return written;
}

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
                   std::make_shared<PagedAttention>(kernel_stream(), g, options),
                   std::move(inputs));
}

}  // namespace octavo

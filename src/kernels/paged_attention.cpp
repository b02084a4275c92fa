#include "kernels/paged_attention.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/primitive.h"

namespace octavo {
namespace {

// The last four inputs of both primitives: pages, cu_seqlens_q, context_lens, block_tables.
cpu::PagedBatch paged_batch(const std::vector<mx::array>& inputs, const PageGeometry& geometry) {
  const size_t first = inputs.size() - 4;
  for (const auto& input : inputs) require_contiguous(input);
  const mx::array& pages = inputs[first];
  const mx::array& tables = inputs[first + 3];
  return {
      .cu_seqlens_q = inputs[first + 1].data<int32_t>(),
      .context_lens = inputs[first + 2].data<int32_t>(),
      .block_tables = tables.data<int32_t>(),
      .table_columns = tables.shape(1),
      .sequences = tables.shape(0),
      .pages = const_cast<std::byte*>(pages.data<std::byte>()),
      .page_count = pages.shape(0),
      .page_stride = pages.shape(1),
      .geometry = geometry,
  };
}

// inputs: k, v, pages, cu_seqlens_q, context_lens, block_tables. The output is the pages' own
// buffer.
class KvWrite : public KernelPrimitive {
 public:
  KvWrite(mx::Stream stream, const PageGeometry& geometry)
      : KernelPrimitive(stream), geometry_(geometry) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("kv_write.cpu");
    outputs[0].copy_shared_buffer(inputs[2]);
    run_on_cpu(*this, [batch = paged_batch(inputs, geometry_), k = inputs[0].data<void>(),
                       v = inputs[1].data<void>()] { cpu::kv_write(batch, k, v); });
  }
  const char* name() const override { return "KvWrite"; }

 private:
  PageGeometry geometry_;
};

// inputs: q, pages, cu_seqlens_q, context_lens, block_tables.
class PagedAttention : public KernelPrimitive {
 public:
  PagedAttention(mx::Stream stream, const PageGeometry& geometry, const AttentionOptions& options)
      : KernelPrimitive(stream), geometry_(geometry), options_(options) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("paged_attention.cpu");
    mx::array& out = outputs[0];
    allocate(out);
    const cpu::AttentionArgs args{
        .batch = paged_batch(inputs, geometry_),
        .q = inputs[0].data<void>(),
        .out = out.data<void>(),
        .dtype = dtype_of(out),
        .q_heads = inputs[0].shape(1),
        .scale = options_.scale,
        .window = options_.window,
        .soft_cap = options_.soft_cap,
    };
    run_on_cpu(*this, [args] { cpu::paged_attention(args); });
  }
  const char* name() const override { return "PagedAttention"; }

 private:
  PageGeometry geometry_;
  AttentionOptions options_;
};

void check_layout(const KvPages& pages, const BatchLayout& layout, const mx::array& block_tables) {
  OCTAVO_CHECK(pages.geometry.block_tokens > 0 && pages.geometry.block_tokens % 8 == 0);
  OCTAVO_CHECK(pages.bytes.ndim() == 2 && pages.bytes.dtype() == mx::uint8);
  OCTAVO_CHECK(static_cast<size_t>(pages.bytes.shape(1)) >= pages.geometry.page_bytes());
  OCTAVO_CHECK(layout.cu_seqlens_q.shape(0) == layout.sequences() + 1);
  OCTAVO_CHECK(block_tables.ndim() == 2 && block_tables.shape(0) == layout.sequences());
  for (const auto* array :
       {&layout.positions, &layout.cu_seqlens_q, &layout.context_lens, &block_tables}) {
    OCTAVO_CHECK(array->dtype() == mx::int32);
  }
}

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
  written.bytes =
      mx::array(pages.bytes.shape(), mx::uint8, std::make_shared<KvWrite>(kernel_stream(), g),
                {k, v, pages.bytes, layout.cu_seqlens_q, layout.context_lens, block_tables});
  return written;
}

mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options) {
  const PageGeometry& g = pages.geometry;
  check_layout(pages, layout, block_tables);
  OCTAVO_CHECK(q.ndim() == 3 && q.shape(0) == layout.tokens() && q.shape(2) == g.k_dim);
  OCTAVO_CHECK(q.shape(1) % g.kv_heads == 0);
  if (pages.path == KernelPath::kReference) {
    return reference::paged_attention(q, pages, layout, block_tables, options);
  }
  return mx::array({layout.tokens(), q.shape(1), g.v_dim}, q.dtype(),
                   std::make_shared<PagedAttention>(kernel_stream(), g, options),
                   {q, pages.bytes, layout.cu_seqlens_q, layout.context_lens, block_tables});
}

}  // namespace octavo

// kv_write.h - for tests and benchmarks: writes k and v to pages unchanged. Models use qkv_write.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/qkv_write.h"
#include "kernels/metal/qkv_write.h"
#include "kernels/page_inputs.h"
#include "kernels/paged_attention.h"
#include "kernels/runtime/primitive.h"

namespace octavo {

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
    args.rows.k = k.data<void>();
    args.rows.v = inputs[kPageInputs + 1].data<void>();
    args.rows.k_stride = geometry_.kv_heads * geometry_.k_dim;
    args.rows.v_stride = geometry_.kv_heads * geometry_.v_dim;
    args.rows.dtype = geometry_.dtype;
    run_on_cpu(*this, [args] { cpu::qkv_write(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    outputs[0].copy_shared_buffer(inputs[0]);
    const mx::array& k = inputs[kPageInputs];
    const mx::array& v = inputs[kPageInputs + 1];
    metal::QkvCall args;
    args.tokens = k.shape(0);
    args.dtype = geometry_.dtype;
    args.targets = page_targets(inputs, outputs[0], geometry_);
    args.k = {k, {.first = 0, .stride = geometry_.kv_heads * geometry_.k_dim}};
    args.v = {v, {.first = 0, .stride = geometry_.kv_heads * geometry_.v_dim}};
    args.k_dim = geometry_.k_dim;
    metal::qkv_write(args, encoder);
  }
  const char* name() const override { return "KvWrite"; }

 private:
  PageGeometry geometry_;
};

// Writes each row's k and v at its position, in place, and returns the same buffer as a new graph
// node. The caller must rebind its pages to the result, so that readers wait for the write.
// k: [T, kv_heads, k_dim]   v: [T, kv_heads, v_dim], both of the geometry's dtype; v is not read if
// values are part of keys. block_tables: as for paged_attention.
inline KvPages kv_write(const KvPages& pages, const mx::array& k, const mx::array& v,
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

}  // namespace octavo

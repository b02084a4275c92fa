#include "kernels/qkv_write.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/qkv_write.h"
#include "kernels/page_inputs.h"
#include "kernels/primitive.h"

namespace octavo {
namespace {

// inputs: page_inputs(), qkv, then q_norm and k_norm if there are norms, then positions and inverse
// frequencies if there is a rotation. outputs: q, and the pages' own buffer.
class QkvWrite : public KernelPrimitive {
 public:
  QkvWrite(mx::Stream stream, const PageGeometry& geometry, const QkvOptions& options)
      : KernelPrimitive(stream),
        geometry_(geometry),
        q_heads_(options.q_heads),
        normed_(options.q_norm.has_value()),
        eps_(options.norm_eps),
        rotated_(options.inverse_frequencies.has_value()),
        magnitude_(options.rope_magnitude) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("qkv_write.cpu");
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    size_t next = kPageInputs;
    cpu::QkvWriteArgs args = args_of(inputs[next++]);
    args.batch = page_batch(inputs, geometry_);
    args.q_out = outputs[0].data<void>();
    if (normed_) {
      args.norm_dtype = dtype_of(inputs[next]);
      args.q_norm = inputs[next++].data<void>();
      args.k_norm = inputs[next++].data<void>();
    }
    if (rotated_) {
      args.rope = {.positions = inputs[next].data<int32_t>(),
                   .inverse_frequencies = inputs[next + 1].data<float>(),
                   .pairs = inputs[next + 1].shape(0),
                   .magnitude = magnitude_};
    }
    run_on_cpu(*this, [args] { cpu::qkv_write(args); });
  }
  const char* name() const override { return "QkvWrite"; }

 private:
  // The rows, as three matrices side by side.
  cpu::QkvWriteArgs args_of(const mx::array& qkv) const {
    cpu::QkvWriteArgs args;
    args.tokens = qkv.shape(0);
    args.dtype = geometry_.dtype;
    args.q_heads = q_heads_;
    args.q_dim = geometry_.k_dim;
    args.eps = eps_;
    args.q_stride = args.k_stride = args.v_stride = qkv.shape(1);
    const auto width = static_cast<int64_t>(size_of(geometry_.dtype));
    const auto* first = qkv.data<std::byte>();
    args.q = first;
    args.k = first + q_heads_ * geometry_.k_dim * width;
    args.v = first + (q_heads_ + geometry_.kv_heads) * geometry_.k_dim * width;
    return args;
  }

  PageGeometry geometry_;
  int q_heads_;
  bool normed_;
  float eps_;
  bool rotated_;
  float magnitude_;
};

void check_options(const PageGeometry& g, const QkvOptions& options) {
  OCTAVO_CHECK(!g.values_in_keys);
  OCTAVO_CHECK(options.q_heads > 0 && options.q_heads % g.kv_heads == 0);
  OCTAVO_CHECK(options.q_norm.has_value() == options.k_norm.has_value());
  if (options.q_norm) {
    OCTAVO_CHECK(options.q_norm->dtype() == options.k_norm->dtype());
    for (const auto* norm : {&*options.q_norm, &*options.k_norm})
      OCTAVO_CHECK(norm->shape() == mx::Shape{g.k_dim});
  }
  if (options.inverse_frequencies) {
    const mx::array& frequencies = *options.inverse_frequencies;
    OCTAVO_CHECK(frequencies.dtype() == mx::float32 && frequencies.ndim() == 1);
    OCTAVO_CHECK(2 * frequencies.shape(0) <= g.k_dim);
  }
}

}  // namespace

QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options) {
  const PageGeometry& g = pages.geometry;
  check_layout(pages, layout, block_tables);
  check_options(g, options);
  const int width = options.q_heads * g.k_dim + g.kv_heads * (g.k_dim + g.v_dim);
  OCTAVO_CHECK((qkv.shape() == mx::Shape{layout.tokens(), width}) && dtype_of(qkv) == g.dtype);
  if (pages.path == KernelPath::kReference) {
    return reference::qkv_write(pages, qkv, layout, block_tables, options);
  }
  std::vector<mx::array> inputs = page_inputs(pages, layout, block_tables);
  inputs.push_back(qkv);
  if (options.q_norm) {
    inputs.push_back(*options.q_norm);
    inputs.push_back(*options.k_norm);
  }
  if (options.inverse_frequencies) {
    inputs.push_back(layout.positions);
    inputs.push_back(*options.inverse_frequencies);
  }
  auto outputs = mx::array::make_arrays(
      {{layout.tokens(), options.q_heads, g.k_dim}, pages.bytes.shape()}, {qkv.dtype(), mx::uint8},
      std::make_shared<QkvWrite>(kernel_stream(), g, options), inputs);
  return {outputs[0], {outputs[1], g, pages.path}};
}

}  // namespace octavo

#include "kernels/latent_write.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/latent_write.h"
#include "kernels/metal/linear.h"
#include "kernels/metal/qkv_write.h"
#include "kernels/page_inputs.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: page_inputs(), q, latent, absorbed, norm, and the arrays of the rotation. outputs: q, and the
// pages' own buffer.
class LatentWrite : public KernelPrimitive {
 public:
  LatentWrite(mx::Stream stream, const PageGeometry& geometry, const PackedLayout& absorbed,
              const LatentOptions& options, std::shared_ptr<metal::RotationTables> rotations)
      : KernelPrimitive(stream),
        geometry_(geometry),
        absorbed_(absorbed),
        eps_(options.norm_eps),
        magnitude_(options.rope_magnitude),
        rotations_(std::move(rotations)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("latent_write.cpu");
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const auto input = [&](size_t i) -> const mx::array& { return inputs[kPageInputs + i]; };
    const cpu::LatentWriteArgs args{
        .batch = page_batch(inputs, geometry_),
        .tokens = input(0).shape(0),
        .latent = input(1).data<void>(),
        .norm = input(3).data<void>(),
        .norm_dtype = dtype_of(input(3)),
        .eps = eps_,
        .q = input(0).data<void>(),
        .heads = input(0).shape(1),
        .q_dim = input(0).shape(2),
        .absorbed = {absorbed_, input(2).data<std::byte>()},
        .rope = rope_job(rope_of(inputs), magnitude_),
        .q_out = outputs[0].data<void>(),
    };
    run_on_cpu(*this, [args] { cpu::latent_write(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const auto input = [&](size_t i) -> const mx::array& { return inputs[kPageInputs + i]; };
    const mx::array& q = input(0);
    metal::LinearCall product{.x = q, .out = outputs[0]};
    product.rows = q.shape(0);
    product.heads = q.shape(1);
    product.x_head = q.shape(2);
    product.out_head = geometry_.k_dim;
    product.layers.push_back({absorbed_, input(2), std::nullopt});
    metal::linear(product, encoder);
    metal::latent_write({.targets = page_targets(inputs, outputs[1], geometry_),
                         .q = q,
                         .latent = input(1),
                         .norm = input(3),
                         .rotations = rotations_->find(rope_of(inputs), magnitude_, encoder),
                         .eps = eps_,
                         .q_out = outputs[0]},
                        encoder);
  }
  const char* name() const override { return "LatentWrite"; }

 private:
  static RopeArrays rope_of(const std::vector<mx::array>& inputs) {
    return rope_of_inputs(std::span(inputs).subspan(kPageInputs + 4));
  }

  PageGeometry geometry_;
  PackedLayout absorbed_;
  float eps_;
  float magnitude_;
  std::shared_ptr<metal::RotationTables> rotations_;
};

void check_rows(const PageGeometry& g, const LatentRows& rows, const Weight& absorbed, int tokens) {
  OCTAVO_CHECK(g.values_in_keys && g.kv_heads == 1);
  const int rope_dims = g.k_dim - g.v_dim;
  OCTAVO_CHECK(rows.q.ndim() == 3 && rows.q.shape(0) == tokens && rows.q.shape(2) > rope_dims);
  OCTAVO_CHECK((rows.latent.shape() == mx::Shape{tokens, g.k_dim}));
  OCTAVO_CHECK(dtype_of(rows.q) == g.dtype && dtype_of(rows.latent) == g.dtype);
  OCTAVO_CHECK(absorbed.rows == rows.q.shape(1) * g.v_dim && g.v_dim % kStripRows == 0);
  OCTAVO_CHECK(absorbed.cols == rows.q.shape(2) - rope_dims);
}

void check_options(const PageGeometry& g, const LatentOptions& options) {
  OCTAVO_CHECK(options.norm.shape() == mx::Shape{g.v_dim});
  OCTAVO_CHECK(options.inverse_frequencies.shape() == mx::Shape{(g.k_dim - g.v_dim) / 2});
}

}  // namespace

QkvWritten latent_write(const KvPages& pages, const LatentRows& rows, const Weight& absorbed,
                        const BatchLayout& layout, const mx::array& block_tables,
                        const LatentOptions& options) {
  const PageGeometry& g = pages.geometry;
  check_layout(pages, layout, block_tables);
  check_rows(g, rows, absorbed, layout.tokens());
  check_options(g, options);
  const RopeArrays rope = layout.rope(options.inverse_frequencies, options.rope_axes);
  check_rope(rope, layout.tokens(), g.k_dim - g.v_dim);
  if (pages.path == KernelPath::kReference)
    return reference::latent_write(pages, rows, absorbed, layout, block_tables, options);
  std::vector<mx::array> inputs = page_inputs(pages, layout, block_tables);
  for (const auto& input : {rows.q, rows.latent, absorbed.packed, options.norm})
    inputs.push_back(input);
  add_rope_inputs(rope, inputs);
  auto outputs = mx::array::make_arrays(
      {{layout.tokens(), rows.q.shape(1), g.k_dim}, pages.bytes.shape()},
      {rows.q.dtype(), mx::uint8},
      std::make_shared<LatentWrite>(kernel_stream(), g, absorbed.layout, options, layout.rotations),
      inputs);
  return {outputs[0], {outputs[1], g, pages.path}};
}

}  // namespace octavo

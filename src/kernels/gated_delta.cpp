#include "kernels/gated_delta.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/gated_delta.h"
#include "kernels/metal/gated_delta.h"
#include "kernels/runtime/primitive.h"
#include "kernels/state_inputs.h"

namespace octavo {
namespace {

// inputs: state_inputs(), qkv, gates, a_log, dt_bias, norm. outputs: out, and the pages' own
// buffer.
class GatedDeltaRule : public KernelPrimitive {
 public:
  // job: only its non-pointer fields are used.
  GatedDeltaRule(mx::Stream stream, const StateGeometry& geometry, const cpu::DeltaJob& job)
      : KernelPrimitive(stream), geometry_(geometry), job_(job) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("gated_delta.cpu");
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const cpu::StateBatch batch = state_batch(inputs, geometry_);
    const mx::array* input = &inputs[kStateInputs];
    cpu::DeltaJob job = job_;
    job.qkv = input[0].data<void>();
    job.gates = input[1].data<void>();
    job.a_log = input[2].data<float>();
    job.dt_bias = input[3].data<float>();
    job.norm = input[4].data<void>();
    job.out = outputs[0].data<void>();
    run_on_cpu(*this, [batch, job] { cpu::gated_delta(batch, job); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const mx::array* input = &inputs[kStateInputs];
    metal::gated_delta({.geometry = geometry_,
                        .pages = outputs[1],
                        .cu_seqlens = inputs[1],
                        .table = inputs[2],
                        .qkv = input[0],
                        .gates = input[1],
                        .z_column = static_cast<int>(job_.z_column),
                        .a_column = static_cast<int>(job_.a_column),
                        .b_column = static_cast<int>(job_.b_column),
                        .a_log = input[2],
                        .dt_bias = input[3],
                        .norm = input[4],
                        .key_heads = static_cast<int>(job_.key_heads),
                        .norm_eps = job_.norm_eps,
                        .out = outputs[0]},
                       encoder);
  }
  const char* name() const override { return "GatedDelta"; }

 private:
  StateGeometry geometry_;
  cpu::DeltaJob job_;
};

void check_rows(const StateGeometry& g, const GatedDeltaRows& rows, int tokens, int key_heads) {
  OCTAVO_CHECK(g.heads > 0 && key_heads > 0 && g.heads % key_heads == 0);
  const int width = 2 * key_heads * g.k_dim + g.heads * g.v_dim;
  OCTAVO_CHECK((rows.qkv.shape() == mx::Shape{tokens, width}));
  OCTAVO_CHECK(rows.gates.ndim() == 2 && rows.gates.shape(0) == tokens);
  OCTAVO_CHECK(rows.gates.dtype() == rows.qkv.dtype());
  const auto fits = [&](int column, int count) {
    return column >= 0 && column + count <= rows.gates.shape(1);
  };
  OCTAVO_CHECK(fits(rows.z_column, g.heads * g.v_dim));
  OCTAVO_CHECK(fits(rows.a_column, g.heads) && fits(rows.b_column, g.heads));
}

void check_weights(const StateGeometry& g, const GatedDeltaWeights& weights) {
  for (const auto* array : {&weights.a_log, &weights.dt_bias})
    OCTAVO_CHECK(array->shape() == mx::Shape{g.heads} && array->dtype() == mx::float32);
  OCTAVO_CHECK(weights.norm.shape() == mx::Shape{g.v_dim});
}

cpu::DeltaJob job_of(const StateGeometry& g, const GatedDeltaRows& rows,
                     const GatedDeltaWeights& weights, const GatedDeltaOptions& options) {
  cpu::DeltaJob job;
  job.qkv_stride = rows.qkv.shape(1);
  job.gates_stride = rows.gates.shape(1);
  job.z_column = rows.z_column;
  job.a_column = rows.a_column;
  job.b_column = rows.b_column;
  job.dtype = dtype_of(rows.qkv);
  job.key_heads = options.key_heads;
  job.value_heads = g.heads;
  job.k_dim = g.k_dim;
  job.v_dim = g.v_dim;
  job.norm_dtype = dtype_of(weights.norm);
  job.norm_eps = options.norm_eps;
  return job;
}

}  // namespace

GatedDelta gated_delta(const StatePages& pages, const GatedDeltaRows& rows,
                       const GatedDeltaWeights& weights, const GatedDeltaOptions& options,
                       const BatchLayout& layout, const mx::array& table) {
  const StateGeometry& g = pages.geometry;
  check_state(pages, layout, table);
  check_rows(g, rows, layout.tokens(), options.key_heads);
  check_weights(g, weights);
  if (pages.path == KernelPath::kReference) {
    return reference::gated_delta(pages, rows, weights, options, layout, table);
  }
  std::vector<mx::array> inputs = state_inputs(pages, layout, table);
  for (const auto* array :
       {&rows.qkv, &rows.gates, &weights.a_log, &weights.dt_bias, &weights.norm})
    inputs.push_back(*array);
  auto outputs = mx::array::make_arrays(
      {{layout.tokens(), g.heads * g.v_dim}, pages.bytes.shape()}, {rows.qkv.dtype(), mx::uint8},
      std::make_shared<GatedDeltaRule>(kernel_stream(), g, job_of(g, rows, weights, options)),
      std::move(inputs));
  return {outputs[0], {outputs[1], g, pages.path}};
}

}  // namespace octavo

#include "kernels/mamba2.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/mamba2.h"
#include "kernels/metal/mamba2.h"
#include "kernels/runtime/primitive.h"
#include "kernels/state_inputs.h"

namespace octavo {
namespace {

// inputs: state_inputs(), xbc, gates, a_log, dt_bias, d. outputs: out, and the pages' own buffer.
class Mamba2Rule : public KernelPrimitive {
 public:
  // job: only its non-pointer fields are used.
  Mamba2Rule(mx::Stream stream, const StateGeometry& geometry, const cpu::MambaJob& job)
      : KernelPrimitive(stream), geometry_(geometry), job_(job) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("mamba2.cpu");
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const cpu::StateBatch batch = state_batch(inputs, geometry_);
    const mx::array* input = &inputs[kStateInputs];
    cpu::MambaJob job = job_;
    job.xbc = input[0].data<void>();
    job.gates = input[1].data<void>();
    job.a_log = input[2].data<float>();
    job.dt_bias = input[3].data<float>();
    job.d = input[4].data<float>();
    job.out = outputs[0].data<void>();
    run_on_cpu(*this, [batch, job] { cpu::mamba2(batch, job); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const mx::array* input = &inputs[kStateInputs];
    metal::mamba2({.geometry = geometry_,
                   .pages = outputs[1],
                   .cu_seqlens = inputs[1],
                   .table = inputs[2],
                   .xbc = input[0],
                   .gates = input[1],
                   .z_column = static_cast<int>(job_.z_column),
                   .dt_column = static_cast<int>(job_.dt_column),
                   .a_log = input[2],
                   .dt_bias = input[3],
                   .d = input[4],
                   .groups = static_cast<int>(job_.groups),
                   .out = outputs[0]},
                  encoder);
  }
  const char* name() const override { return "Mamba2"; }

 private:
  StateGeometry geometry_;
  cpu::MambaJob job_;
};

void check_mamba_rows(const StateGeometry& g, const Mamba2Rows& rows, int tokens, int groups) {
  OCTAVO_CHECK(g.heads > 0 && groups > 0 && g.heads % groups == 0);
  const int width = g.heads * g.v_dim + 2 * groups * g.k_dim;
  OCTAVO_CHECK((rows.xbc.shape() == mx::Shape{tokens, width}));
  OCTAVO_CHECK(rows.gates.ndim() == 2 && rows.gates.shape(0) == tokens);
  OCTAVO_CHECK(rows.gates.dtype() == rows.xbc.dtype());
  OCTAVO_CHECK(rows.z_column >= 0 && rows.z_column + g.heads * g.v_dim <= rows.gates.shape(1));
  OCTAVO_CHECK(rows.dt_column >= 0 && rows.dt_column + g.heads <= rows.gates.shape(1));
}

cpu::MambaJob mamba_job(const StateGeometry& g, const Mamba2Rows& rows, int groups) {
  cpu::MambaJob job;
  job.xbc_stride = rows.xbc.shape(1);
  job.gates_stride = rows.gates.shape(1);
  job.z_column = rows.z_column;
  job.dt_column = rows.dt_column;
  job.dtype = dtype_of(rows.xbc);
  job.heads = g.heads;
  job.groups = groups;
  job.state_dim = g.k_dim;
  job.head_dim = g.v_dim;
  return job;
}

}  // namespace

Mamba2 mamba2(const StatePages& pages, const Mamba2Rows& rows, const Mamba2Weights& weights,
              const Mamba2Options& options, const BatchLayout& layout, const mx::array& table) {
  const StateGeometry& g = pages.geometry;
  check_state(pages, layout, table);
  check_mamba_rows(g, rows, layout.tokens(), options.groups);
  for (const auto* array : {&weights.a_log, &weights.dt_bias, &weights.d})
    OCTAVO_CHECK(array->shape() == mx::Shape{g.heads} && array->dtype() == mx::float32);
  if (pages.path == KernelPath::kReference)
    return reference::mamba2(pages, rows, weights, options, layout, table);
  std::vector<mx::array> inputs = state_inputs(pages, layout, table);
  for (const auto* array : {&rows.xbc, &rows.gates, &weights.a_log, &weights.dt_bias, &weights.d})
    inputs.push_back(*array);
  auto outputs = mx::array::make_arrays(
      {{layout.tokens(), g.heads * g.v_dim}, pages.bytes.shape()}, {rows.xbc.dtype(), mx::uint8},
      std::make_shared<Mamba2Rule>(kernel_stream(), g, mamba_job(g, rows, options.groups)),
      std::move(inputs));
  return {outputs[0], {outputs[1], g, pages.path}};
}

}  // namespace octavo

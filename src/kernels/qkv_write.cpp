#include "kernels/qkv_write.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/qkv_write.h"
#include "kernels/metal/qkv_write.h"
#include "kernels/page_inputs.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// The options without their arrays, which are inputs of the primitive in this order: q_norm if
// present, k_norm if there are pages too, positions if q is scaled by them, and the arrays of the
// rotation if there is one.
struct QkvSwitches {
  int q_heads;
  int first_column;
  bool normed, norms_rows, norms_values;
  float eps;
  bool rotated;
  float magnitude;
  float beta, period;
  bool values_are_keys;

  QkvSwitches(const QkvOptions& options, int head_dim)
      : q_heads(options.q_heads),
        first_column(options.first_column),
        normed(options.q_norm.has_value()),
        norms_rows(normed && options.q_norm->shape(0) != head_dim),
        norms_values(options.v_norm),
        eps(options.norm_eps),
        rotated(options.inverse_frequencies.has_value()),
        magnitude(options.rope_magnitude),
        beta(options.position_beta),
        period(options.position_period),
        values_are_keys(options.values_are_keys) {}

  // All arguments except the rows and the pages. `next`: the first of the inputs above.
  cpu::QkvWriteArgs args(const std::vector<mx::array>& inputs, size_t next, bool with_keys) const {
    cpu::QkvWriteArgs args;
    args.rows.q_heads = q_heads;
    args.rows.norms_rows = norms_rows;
    args.rows.norms_values = norms_values;
    args.rows.eps = eps;
    if (normed) {
      args.rows.norm_dtype = dtype_of(inputs[next]);
      args.rows.q_norm = inputs[next++].data<void>();
      if (with_keys) args.rows.k_norm = inputs[next++].data<void>();
    }
    if (beta != 0) args.position_scale = {inputs[next++].data<int32_t>(), beta, period};
    if (rotated) args.rope = rope_job(rope_of_inputs(std::span(inputs).subspan(next)), magnitude);
    return args;
  }

  metal::QkvCall metal_args(const std::vector<mx::array>& inputs, size_t next, bool with_keys,
                            metal::RotationTables& tables, metal::Encoder& encoder) const {
    metal::QkvCall args;
    args.q_heads = q_heads;
    args.norms_rows = norms_rows;
    args.norms_values = norms_values;
    args.eps = eps;
    args.beta = beta;
    args.period = period;
    if (normed) args.q_norm = inputs[next++];
    if (normed && with_keys) args.k_norm = inputs[next++];
    if (beta != 0) args.positions = inputs[next++];
    if (rotated) {
      const RopeArrays rope = rope_of_inputs(std::span(inputs).subspan(next));
      args.rotations = tables.find(rope, magnitude, encoder);
    }
    return args;
  }
};

void add_inputs(const QkvOptions& options, const BatchLayout& layout, bool with_keys,
                std::vector<mx::array>& inputs) {
  if (options.q_norm) inputs.push_back(*options.q_norm);
  if (options.k_norm && with_keys) inputs.push_back(*options.k_norm);
  if (options.position_beta != 0) inputs.push_back(layout.positions);
  if (options.inverse_frequencies)
    add_rope_inputs(layout.rope(*options.inverse_frequencies, options.rope_axes), inputs);
}

// inputs: page_inputs(), qkv, then add_inputs(). outputs: q, and the pages' own buffer.
class QkvWrite : public KernelPrimitive {
 public:
  QkvWrite(mx::Stream stream, const PageGeometry& geometry, const QkvOptions& options,
           std::shared_ptr<metal::RotationTables> rotations)
      : KernelPrimitive(stream),
        geometry_(geometry),
        switches_(options, geometry.k_dim),
        rotations_(std::move(rotations)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("qkv_write.cpu");
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    cpu::QkvWriteArgs args = switches_.args(inputs, kPageInputs + 1, true);
    place_rows(inputs[kPageInputs], args);
    args.batch = page_batch(inputs, geometry_);
    args.rows.q_out = outputs[0].data<void>();
    run_on_cpu(*this, [args] { cpu::qkv_write(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    metal::QkvCall args = switches_.metal_args(inputs, kPageInputs + 1, true, *rotations_, encoder);
    const mx::array& qkv = inputs[kPageInputs];
    const int q_first = switches_.first_column;
    const int k_first = q_first + switches_.q_heads * geometry_.k_dim;
    const int v_first =
        switches_.values_are_keys ? k_first : k_first + geometry_.kv_heads * geometry_.k_dim;
    args.tokens = qkv.shape(0);
    args.dtype = geometry_.dtype;
    args.targets = page_targets(inputs, outputs[1], geometry_);
    args.q = {qkv, {.first = q_first, .stride = qkv.shape(1)}};
    args.k = {qkv, {.first = k_first, .stride = qkv.shape(1)}};
    args.v = {qkv, {.first = v_first, .stride = qkv.shape(1)}};
    args.k_dim = geometry_.k_dim;
    args.q_out = outputs[0];
    metal::qkv_write(args, encoder);
  }
  const char* name() const override { return "QkvWrite"; }

 private:
  // The q, k and v columns of the rows.
  void place_rows(const mx::array& qkv, cpu::QkvWriteArgs& args) const {
    args.tokens = qkv.shape(0);
    args.rows.dtype = geometry_.dtype;
    args.rows.q_dim = geometry_.k_dim;
    args.rows.q_stride = args.rows.k_stride = args.rows.v_stride = qkv.shape(1);
    const auto width = static_cast<int64_t>(size_of(geometry_.dtype));
    const auto* first = qkv.data<std::byte>() + switches_.first_column * width;
    args.rows.q = first;
    args.rows.k = first + switches_.q_heads * geometry_.k_dim * width;
    args.rows.v = switches_.values_are_keys
                      ? args.rows.k
                      : first + (switches_.q_heads + geometry_.kv_heads) * geometry_.k_dim * width;
  }

  PageGeometry geometry_;
  QkvSwitches switches_;
  std::shared_ptr<metal::RotationTables> rotations_;
};

// inputs: q, then add_inputs().
class PrepareQueries : public KernelPrimitive {
 public:
  PrepareQueries(mx::Stream stream, const QkvOptions& options, int head_dim,
                 std::shared_ptr<metal::RotationTables> rotations)
      : KernelPrimitive(stream),
        switches_(options, head_dim),
        head_dim_(head_dim),
        rotations_(std::move(rotations)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("prepare_queries.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    const mx::array& q = inputs[0];
    allocate(outputs[0]);
    cpu::QkvWriteArgs args = switches_.args(inputs, 1, false);
    args.tokens = q.shape(0);
    args.rows.dtype = dtype_of(q);
    args.rows.q = q.data<void>();
    args.rows.q_stride = q.shape(1);
    args.rows.q_dim = head_dim_;
    args.rows.q_out = outputs[0].data<void>();
    run_on_cpu(*this, [args] { cpu::qkv_write(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const mx::array& q = inputs[0];
    metal::QkvCall args = switches_.metal_args(inputs, 1, false, *rotations_, encoder);
    args.tokens = q.shape(0);
    args.dtype = dtype_of(q);
    args.q = {q, {.first = 0, .stride = q.shape(1)}};
    args.k_dim = head_dim_;
    args.q_out = outputs[0];
    metal::qkv_write(args, encoder);
  }
  const char* name() const override { return "PrepareQueries"; }

 private:
  QkvSwitches switches_;
  int head_dim_;
  std::shared_ptr<metal::RotationTables> rotations_;
};

void check_norm(const mx::array& norm, int heads, int dim, bool rows) {
  OCTAVO_CHECK(norm.shape() == mx::Shape{rows ? heads * dim : dim});
}

void check_rotation(const QkvOptions& options, const BatchLayout& layout, int head_dim) {
  if (!options.inverse_frequencies) return;
  check_rope(layout.rope(*options.inverse_frequencies, options.rope_axes), layout.tokens(),
             head_dim);
}

void check_options(const PageGeometry& g, const QkvOptions& options) {
  OCTAVO_CHECK(!g.values_in_keys);
  OCTAVO_CHECK(options.q_heads > 0 && options.q_heads % g.kv_heads == 0);
  OCTAVO_CHECK(options.q_norm.has_value() == options.k_norm.has_value());
  OCTAVO_CHECK(!options.values_are_keys || g.k_dim == g.v_dim);
  if (options.q_norm) {
    OCTAVO_CHECK(options.q_norm->dtype() == options.k_norm->dtype());
    const bool rows = options.q_norm->shape(0) != g.k_dim;
    check_norm(*options.q_norm, options.q_heads, g.k_dim, rows);
    check_norm(*options.k_norm, g.kv_heads, g.k_dim, rows);
  }
}

}  // namespace

QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options) {
  const PageGeometry& g = pages.geometry;
  check_layout(pages, layout, block_tables);
  check_options(g, options);
  check_rotation(options, layout, g.k_dim);
  const int v_width = options.values_are_keys ? 0 : g.v_dim;
  const int width = options.q_heads * g.k_dim + g.kv_heads * (g.k_dim + v_width);
  OCTAVO_CHECK((qkv.shape() == mx::Shape{layout.tokens(), options.first_column + width}));
  OCTAVO_CHECK(options.first_column >= 0 && dtype_of(qkv) == g.dtype);
  if (pages.path == KernelPath::kReference) {
    return reference::qkv_write(pages, qkv, layout, block_tables, options);
  }
  std::vector<mx::array> inputs = page_inputs(pages, layout, block_tables);
  inputs.push_back(qkv);
  add_inputs(options, layout, true, inputs);
  auto outputs = mx::array::make_arrays(
      {{layout.tokens(), options.q_heads, g.k_dim}, pages.bytes.shape()}, {qkv.dtype(), mx::uint8},
      std::make_shared<QkvWrite>(kernel_stream(), g, options, layout.rotations), inputs);
  return {outputs[0], {outputs[1], g, pages.path}};
}

mx::array prepare_queries(const mx::array& q, const BatchLayout& layout, const QkvOptions& options,
                          KernelPath path) {
  OCTAVO_CHECK(q.ndim() == 2 && q.shape(0) == layout.tokens());
  OCTAVO_CHECK(options.q_heads > 0 && q.shape(1) % options.q_heads == 0);
  const int head_dim = q.shape(1) / options.q_heads;
  if (options.q_norm) {
    check_norm(*options.q_norm, options.q_heads, head_dim, options.q_norm->shape(0) != head_dim);
  }
  check_rotation(options, layout, head_dim);
  if (path == KernelPath::kReference) return reference::prepare_queries(q, layout, options);
  std::vector<mx::array> inputs = {q};
  add_inputs(options, layout, false, inputs);
  return mx::array(
      {q.shape(0), options.q_heads, head_dim}, q.dtype(),
      std::make_shared<PrepareQueries>(kernel_stream(), options, head_dim, layout.rotations),
      std::move(inputs));
}

}  // namespace octavo

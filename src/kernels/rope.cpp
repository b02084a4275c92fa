#include "kernels/rope.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/qkv_write.h"
#include "kernels/metal/row_tiles.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: x, and the arrays of the rotation.
class Rope : public KernelPrimitive {
 public:
  Rope(mx::Stream stream, float magnitude) : KernelPrimitive(stream), magnitude_(magnitude) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("rope.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    const mx::array& x = inputs[0];
    allocate(outputs[0]);
    cpu::QkvWriteArgs args;
    args.tokens = x.shape(0);
    args.rows.q = x.data<void>();
    args.rows.q_stride = x.shape(1) * x.shape(2);
    args.rows.dtype = dtype_of(x);
    args.rows.q_heads = x.shape(1);
    args.rows.q_dim = x.shape(2);
    args.rope = rope_job(rope_of(inputs), magnitude_);
    args.rows.q_out = outputs[0].data<void>();
    run_on_cpu(*this, [args] { cpu::qkv_write(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const mx::array& x = inputs[0];
    const RopeArrays by = rope_of(inputs);
    const metal::RopeParams params{
        .heads = x.shape(1), .dim = x.shape(2), .pairs = by.pairs(), .magnitude = magnitude_};
    metal::Launch launch("rope_rows", {dtype_of(x)});
    launch.constant("kHasAxes", by.axes.has_value())
        .input("x", x)
        .input("positions", by.positions)
        .input("inverse_frequencies", by.inverse_frequencies)
        .optional_input("axes", by.axes)
        .output("out", outputs[0])
        .bytes("params", params)
        .grid(
            {metal::groups_of(params.dim - params.pairs, metal::kRopeThreads),
             metal::groups_of(params.heads, metal::kRopeHeads), static_cast<uint32_t>(x.shape(0))},
            {metal::kRopeThreads});
    encoder.run(launch);
  }
  const char* name() const override { return "Rope"; }

 private:
  static RopeArrays rope_of(const std::vector<mx::array>& inputs) {
    return rope_of_inputs(std::span(inputs).subspan(1));
  }

  float magnitude_;
};

}  // namespace

mx::array rope(const mx::array& x, const mx::array& positions, const mx::array& inverse_frequencies,
               float magnitude, KernelPath path) {
  return rope(x, RopeArrays{positions, inverse_frequencies}, magnitude, path);
}

mx::array rope(const mx::array& x, const RopeArrays& by, float magnitude, KernelPath path) {
  OCTAVO_CHECK(x.ndim() == 3);
  check_rope(by, x.shape(0), x.shape(2));
  if (path == KernelPath::kReference) return reference::rope(x, by, magnitude);
  std::vector<mx::array> inputs = {x};
  add_rope_inputs(by, inputs);
  return mx::array(x.shape(), x.dtype(), std::make_shared<Rope>(kernel_stream(), magnitude),
                   std::move(inputs));
}

}  // namespace octavo

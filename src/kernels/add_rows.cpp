#include "kernels/add_rows.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/metal/norm_params.h"
#include "kernels/metal/row_tiles.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: x, y, then the norm's weight and bias if present.
class AddRows : public KernelPrimitive {
 public:
  AddRows(mx::Stream stream, const AddRowsOptions& options)
      : KernelPrimitive(stream),
        norm_(options.norm ? options.norm->kind : Norm::kNone),
        eps_(options.norm ? options.norm->eps : 0),
        scale_(options.scale),
        out_scale_(options.out_scale) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("add_rows.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    const mx::array& y = inputs[1];
    allocate(outputs[0]);
    cpu::AddRowsJob job{
        .x = inputs[0].data<void>(),
        .y = {.x = y.data<void>(),
              .dtype = dtype_of(y),
              .rows = static_cast<int64_t>(y.size()) / y.shape(-1),
              .cols = y.shape(-1),
              .norm = norm_,
              .eps = eps_},
        .scale = scale_,
        .out_scale = out_scale_,
        .out = outputs[0].data<void>(),
    };
    if (norm_ != Norm::kNone) {
      job.y.norm_weight = inputs[2].data<void>();
      job.y.norm_dtype = dtype_of(inputs[2]);
      job.y.norm_bias = inputs.size() > 3 ? inputs[3].data<void>() : nullptr;
    }
    run_on_cpu(*this, [job] { cpu::add_rows(job); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const mx::array& x = inputs[0];
    const DType type = dtype_of(x);
    const metal::AddRowsParams params{
        .cols = x.shape(-1), .scale = scale_, .out_scale = out_scale_, .eps = eps_};
    if (norm_ == Norm::kNone) {
      metal::Launch launch("add_rows", {type});
      launch.input("x", x).input("y", inputs[1]).output("out", outputs[0]).bytes("params", params);
      return encoder.run(metal::over_row_tiles(launch, outputs[0]));
    }
    const bool has_bias = inputs.size() > 3;
    metal::Launch launch("add_normed_rows", {type, dtype_of(inputs[2])});
    launch.constant("kIsLayer", norm_ == Norm::kLayer)
        .constant("kHasBias", has_bias)
        .input("x", x)
        .input("y", inputs[1])
        .input("weight", inputs[2])
        .optional_input("bias", has_bias ? &inputs[3] : nullptr)
        .output("out", outputs[0])
        .bytes("params", params)
        .grid({static_cast<uint32_t>(x.size()) / static_cast<uint32_t>(x.shape(-1))},
              {metal::kNormThreads});
    encoder.run(launch);
  }
  const char* name() const override { return "AddRows"; }

 private:
  Norm norm_;
  float eps_;
  float scale_;
  float out_scale_;
};

}  // namespace

mx::array add_rows(const mx::array& x, const mx::array& y, const AddRowsOptions& options) {
  OCTAVO_CHECK(x.ndim() >= 1 && x.shape() == y.shape() && x.dtype() == y.dtype());
  if (options.path == KernelPath::kReference) return reference::add_rows(x, y, options);
  std::vector<mx::array> inputs = {x, y};
  if (options.norm) {
    OCTAVO_CHECK(options.norm->weight.shape() == mx::Shape{y.shape(-1)});
    inputs.push_back(options.norm->weight);
    if (options.norm->bias) inputs.push_back(*options.norm->bias);
  }
  return mx::array(x.shape(), x.dtype(), std::make_shared<AddRows>(kernel_stream(), options),
                   std::move(inputs));
}

}  // namespace octavo

#include "kernels/add_rows.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/primitive.h"

namespace octavo {
namespace {

// inputs: x, y, then the norm's weight and bias if there are.
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

#include "kernels/norm.h"

#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/metal/norm.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: x, weight, bias if present.
class NormRows : public KernelPrimitive {
 public:
  NormRows(mx::Stream stream, Norm kind, float eps, int groups)
      : KernelPrimitive(stream), kind_(kind), eps_(eps), groups_(groups) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("norm.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    const mx::array& x = inputs[0];
    allocate(outputs[0]);
    const cpu::RowsJob job{
        .x = x.data<void>(),
        .dtype = dtype_of(x),
        .rows = static_cast<int64_t>(x.size()) / x.shape(-1) * groups_,
        .cols = x.shape(-1) / groups_,
        .norm = kind_,
        .norm_weight = inputs[1].data<void>(),
        .norm_dtype = dtype_of(inputs[1]),
        .norm_bias = inputs.size() > 2 ? inputs[2].data<void>() : nullptr,
        .parts = groups_,
        .eps = eps_,
    };
    run_on_cpu(*this, [job, out = outputs[0].data<void>()] { cpu::norm_rows(job, out); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    metal::norm({.x = inputs[0],
                 .weight = inputs[1],
                 .bias = inputs.size() > 2 ? std::optional(inputs[2]) : std::nullopt,
                 .kind = kind_,
                 .eps = eps_,
                 .groups = groups_,
                 .out = outputs[0]},
                encoder);
  }
  const char* name() const override { return "Norm"; }

 private:
  Norm kind_;
  float eps_;
  int groups_;
};

}  // namespace

mx::array norm(const mx::array& x, const NormSpec& spec, KernelPath path) {
  OCTAVO_CHECK(spec.weight.ndim() == 1 && spec.weight.shape(0) == x.shape(-1));
  OCTAVO_CHECK(!spec.bias || spec.bias->dtype() == spec.weight.dtype());
  if (path == KernelPath::kReference) return reference::norm(x, spec);
  std::vector<mx::array> inputs = {x, spec.weight};
  if (spec.bias) inputs.push_back(*spec.bias);
  return mx::array(x.shape(), x.dtype(),
                   std::make_shared<NormRows>(kernel_stream(), spec.kind, spec.eps, 1),
                   std::move(inputs));
}

mx::array group_norm(const mx::array& x, const NormSpec& spec, int groups, KernelPath path) {
  OCTAVO_CHECK(spec.weight.ndim() == 1 && spec.weight.shape(0) == x.shape(-1) && !spec.bias);
  OCTAVO_CHECK(groups > 0 && x.shape(-1) % groups == 0);
  if (path == KernelPath::kReference) return reference::group_norm(x, spec, groups);
  return mx::array(x.shape(), x.dtype(),
                   std::make_shared<NormRows>(kernel_stream(), spec.kind, spec.eps, groups),
                   {x, spec.weight});
}

mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps, KernelPath path) {
  return norm(x, {.weight = weight, .eps = eps}, path);
}

}  // namespace octavo

#include "kernels/gate_rows.h"

#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/rows.h"
#include "kernels/metal/row_tiles.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: x, gate.
class GateRows : public KernelPrimitive {
 public:
  GateRows(mx::Stream stream, int x_first, int gate_first, Gate kind)
      : KernelPrimitive(stream), x_first_(x_first), gate_first_(gate_first), kind_(kind) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("gate_rows.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const mx::array& x = inputs[0];
    const mx::array& gate = inputs[1];
    const DType dtype = dtype_of(x);
    const cpu::GateJob job{
        .x = cpu::at(x.data<void>(), dtype, x_first_),
        .gate = cpu::at(gate.data<void>(), dtype, gate_first_),
        .x_stride = x.shape(1),
        .gate_stride = gate.shape(1),
        .dtype = dtype,
        .sigmoid = kind_ == Gate::kSigmoid,
        .rows = x.shape(0),
        .cols = outputs[0].shape(1),
        .out = outputs[0].data<void>(),
    };
    run_on_cpu(*this, [job] { cpu::gate_rows(job); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    metal::Launch launch("gate_rows", {dtype_of(inputs[0])});
    launch.constant("kSigmoid", kind_ == Gate::kSigmoid)
        .input("x", inputs[0])
        .input("gate", inputs[1])
        .output("out", outputs[0])
        .bytes("params", metal::GateRowsParams{.cols = outputs[0].shape(1),
                                               .x_first = x_first_,
                                               .x_stride = inputs[0].shape(1),
                                               .gate_first = gate_first_,
                                               .gate_stride = inputs[1].shape(1)});
    encoder.run(metal::over_row_tiles(launch, outputs[0]));
  }
  const char* name() const override { return "GateRows"; }

 private:
  int x_first_;
  int gate_first_;
  Gate kind_;
};

}  // namespace

mx::array gate_rows(const Columns& x, const Columns& gate, int count, Gate kind, KernelPath path) {
  OCTAVO_CHECK(x.rows.dtype() == gate.rows.dtype() && x.rows.shape(0) == gate.rows.shape(0));
  for (const auto* columns : {&x, &gate}) {
    OCTAVO_CHECK(columns->rows.ndim() == 2 && columns->first >= 0);
    OCTAVO_CHECK(columns->first + count <= columns->rows.shape(1));
  }
  if (path == KernelPath::kReference) return reference::gate_rows(x, gate, count, kind);
  return mx::array({x.rows.shape(0), count}, x.rows.dtype(),
                   std::make_shared<GateRows>(kernel_stream(), x.first, gate.first, kind),
                   {x.rows, gate.rows});
}

}  // namespace octavo

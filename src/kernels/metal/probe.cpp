#include "kernels/metal/probe.h"

#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/metal/encoder.h"
#include "kernels/runtime/primitive.h"

namespace octavo::metal {
namespace {

class ProbePrimitive : public KernelPrimitive {
 public:
  using KernelPrimitive::KernelPrimitive;
  void run_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    OCTAVO_CHECK(!"the probes of kernels/metal/probe.h need a GPU");
  }
};

class ReadProbe : public ProbePrimitive {
 public:
  using ProbePrimitive::ProbePrimitive;
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 Encoder& encoder) override {
    require_contiguous(inputs[0]);
    allocate(outputs[0]);
    Launch launch("probe_read");
    launch.input("words", inputs[0])
        .output("sums", outputs[0])
        .grid({static_cast<uint32_t>(outputs[0].size()) / kProbeThreads}, {kProbeThreads});
    encoder.run(launch);
  }
  const char* name() const override { return "ReadProbe"; }
};

class FmaProbe : public ProbePrimitive {
 public:
  FmaProbe(mx::Stream stream, DType dtype, const FmaProbeParams& params)
      : ProbePrimitive(stream), dtype_(dtype), params_(params) {}
  void run_metal(const std::vector<mx::array>&, std::vector<mx::array>& outputs,
                 Encoder& encoder) override {
    allocate(outputs[0]);
    Launch launch("probe_fma", {dtype_});
    launch.output("out", outputs[0])
        .bytes("params", params_)
        .grid({static_cast<uint32_t>(outputs[0].size()) / kProbeThreads}, {kProbeThreads});
    encoder.run(launch);
  }
  const char* name() const override { return "FmaProbe"; }

 private:
  DType dtype_;
  FmaProbeParams params_;
};

}  // namespace

mx::array read_probe(const mx::array& words) {
  OCTAVO_CHECK(words.ndim() == 1 && words.dtype() == mx::uint32);
  OCTAVO_CHECK(words.shape(0) > 0 && words.shape(0) % kProbeGroupWords == 0);
  const mx::Shape sums = {words.shape(0) / kProbeGroupWords * kProbeThreads};
  return mx::array(sums, mx::uint32, std::make_shared<ReadProbe>(kernel_stream()), {words});
}

mx::array fma_probe(DType dtype, int groups, const FmaProbeParams& params) {
  OCTAVO_CHECK(groups > 0 && params.rounds >= 0);
  return mx::array(mx::Shape{groups * kProbeThreads}, mx::float32,
                   std::make_shared<FmaProbe>(kernel_stream(), dtype, params),
                   std::vector<mx::array>{});
}

double fma_probe_flops(int groups, const FmaProbeParams& params) {
  return 2.0 * kProbeThreads * kProbeChains * groups * params.rounds;
}

}  // namespace octavo::metal

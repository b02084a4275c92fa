#include "kernels/fault.h"

#include <mlx/scheduler.h>

#include <memory>
#include <stdexcept>

#include "kernels/primitive.h"

namespace octavo {
namespace {

// inputs: x.
class Fault : public KernelPrimitive {
 public:
  using KernelPrimitive::KernelPrimitive;
  void run_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    allocate(outputs[0]);
    run_on_cpu(*this, [] { throw std::runtime_error("a kernel failed, as a test asked"); });
  }
  void run_metal(const std::vector<mx::array>&, std::vector<mx::array>&, metal::Encoder&) override {
    throw std::runtime_error("a kernel failed, as a test asked");
  }
  const char* name() const override { return "Fault"; }
};

}  // namespace

// Metal's errors belong to the arrays: waiting for one throws. The CPU's belong to the stream.
void check_kernels() {
  const mx::Stream stream = kernel_stream();
  if (stream.device == mx::Device::cpu) mx::scheduler::check_error(stream);
}

void wait_for_kernels() noexcept {
  // Each failure is told once, so two are plenty; a GPU that is gone fails for ever.
  constexpr int kMostFailures = 8;
  for (int failures = 0; failures < kMostFailures; ++failures) {
    try {
      mx::synchronize(kernel_stream());
      check_kernels();
      return;
    } catch (...) {
      // Reported already; what matters is that nothing runs any more.
    }
  }
}

mx::array fail_when_run(const mx::array& x) {
  return mx::array(x.shape(), x.dtype(), std::make_shared<Fault>(kernel_stream()), {x});
}

}  // namespace octavo

#include "kernels/runtime/fault.h"

#include <mlx/scheduler.h>

#include <memory>
#include <stdexcept>

#include "kernels/runtime/primitive.h"

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

std::vector<mx::Stream> kernel_streams() {
  const mx::Stream own = kernel_stream();
  const mx::Stream cpu = mx::default_stream(mx::Device::cpu);
  if (own == cpu) return {own};
  return {own, cpu};
}

// Errors stay with the stream they came about on until somebody asks it. Waiting for an array asks
// too, but not always: MLX returns at once when the array's event is signalled, and it signals
// those of a failed command buffer by hand.
void check_kernels(const std::vector<mx::Stream>& streams) {
  for (const mx::Stream stream : streams) {
    if (stream.device == mx::Device::cpu) {
      mx::scheduler::check_error(stream);
    } else {
      metal::check_stream(stream);
    }
  }
}

void wait_for_kernels(const std::vector<mx::Stream>& streams) noexcept {
  // Each failure is told once, so two are plenty; a GPU that is gone fails for ever.
  constexpr int kMostFailures = 8;
  for (const mx::Stream stream : streams) {
    for (int failures = 0; failures < kMostFailures; ++failures) {
      try {
        mx::synchronize(stream);  // throws what check_kernels would
        break;
      } catch (...) {
        // Reported already; what matters is that nothing runs any more.
      }
    }
  }
}

mx::array fail_when_run(const mx::array& x) {
  return mx::array(x.shape(), x.dtype(), std::make_shared<Fault>(kernel_stream()), {x});
}

}  // namespace octavo

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
    run_on_cpu(*this, [] { throw std::runtime_error("a kernel failed as requested by a test"); });
  }
  void run_metal(const std::vector<mx::array>&, std::vector<mx::array>&, metal::Encoder&) override {
    throw std::runtime_error("a kernel failed as requested by a test");
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

// A stream keeps its errors until it is queried. Waiting for an array queries it too, but not
// always: MLX returns at once if the array's event is signalled, and it signals the events of a
// failed command buffer itself.
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
  // Each failure is reported once, so two attempts suffice; a lost GPU fails forever.
  constexpr int kMostFailures = 8;
  for (const mx::Stream stream : streams) {
    for (int failures = 0; failures < kMostFailures; ++failures) {
      try {
        mx::synchronize(stream);  // throws what check_kernels would
        break;
      } catch (...) {
        // Already reported; the purpose here is to wait until nothing runs.
      }
    }
  }
}

mx::array fail_when_run(const mx::array& x) {
  return mx::array(x.shape(), x.dtype(), std::make_shared<Fault>(kernel_stream()), {x});
}

}  // namespace octavo

#include "kernels/fault.h"

#include <mlx/scheduler.h>

#include <exception>
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
  const char* name() const override { return "Fault"; }
};

}  // namespace

void check_kernels() { mx::scheduler::check_error(kernel_stream()); }

void wait_for_kernels() noexcept {
  for (bool waiting = true; waiting;) {
    try {
      mx::synchronize(kernel_stream());
      check_kernels();
      waiting = false;
    } catch (const std::exception&) {
      // Reported once already; what matters is that nothing runs any more.
    }
  }
}

mx::array fail_when_run(const mx::array& x) {
  return mx::array(x.shape(), x.dtype(), std::make_shared<Fault>(kernel_stream()), {x});
}

}  // namespace octavo

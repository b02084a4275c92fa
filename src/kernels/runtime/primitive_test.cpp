#include "kernels/runtime/primitive.h"

#include <gtest/gtest.h>

#include <memory>

#include "kernels/cpu/isa.h"

namespace octavo {
namespace {

// Its output is 1 if its task ran with the kernels' float state.
class FloatStateProbe : public KernelPrimitive {
 public:
  using KernelPrimitive::KernelPrimitive;
  const char* name() const override { return "FloatStateProbe"; }

 protected:
  void run_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    allocate(outputs[0]);
    run_on_cpu(*this,
               [out = outputs[0].data<int32_t>()] { *out = cpu::has_float_state() ? 1 : 0; });
  }
  void run_metal(const std::vector<mx::array>&, std::vector<mx::array>&, metal::Encoder&) override {
    FAIL() << "the probe has no Metal kernel";
  }
};

TEST(Primitive, TasksOnAStreamHaveTheFloatStateOfTheKernels) {
  const mx::Stream stream = mx::new_stream(mx::Device::cpu);
  mx::array probe({1}, mx::int32, std::make_shared<FloatStateProbe>(stream), {});
  probe.eval();
  EXPECT_EQ(probe.item<int32_t>(), 1);
}

}  // namespace
}  // namespace octavo

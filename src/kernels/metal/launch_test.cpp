#include "kernels/metal/launch.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "kernels/metal/attention_params.h"

namespace octavo::metal {
namespace {

mx::array floats(int count) { return mx::zeros({count}); }

Launch good_merge() {
  Launch launch("merge_partials", {DType::kFloat32, 64});
  launch.constant("kHasSinks", false);
  return launch;
}

TEST(Launch, ArgumentsMustFollowTheSignature) {
  const mx::array items = mx::zeros({6}, mx::int32), numbers = floats(8);
  const AttentionParams params{};
  const auto with = [&](const std::function<void(Launch&)>& arguments) {
    Launch launch = good_merge();
    arguments(launch);
    launch.grid({1}, {32});
    launch.check();
  };
  EXPECT_NO_THROW(with([&](Launch& l) {
    l.input("partials", numbers).input("items", items).optional_input("sinks", nullptr);
    l.output("out", numbers).bytes("params", params);
  }));
  EXPECT_THROW(with([&](Launch& l) {  // two swapped
                 l.input("items", items).input("partials", numbers);
                 l.optional_input("sinks", nullptr);
                 l.output("out", numbers).bytes("params", params);
               }),
               std::logic_error);
  EXPECT_THROW(with([&](Launch& l) {  // one missing
                 l.input("partials", numbers).input("items", items);
                 l.output("out", numbers).bytes("params", params);
               }),
               std::logic_error);
  EXPECT_THROW(with([&](Launch& l) {  // an output as an input
                 l.input("partials", numbers).input("items", items);
                 l.optional_input("sinks", nullptr);
                 l.input("out", numbers).bytes("params", params);
               }),
               std::logic_error);
  EXPECT_THROW(with([&](Launch& l) {  // another element type
                 l.input("partials", numbers).input("items", numbers);
                 l.optional_input("sinks", nullptr);
                 l.output("out", numbers).bytes("params", params);
               }),
               std::logic_error);
}

TEST(Launch, ConstantsMustBelongToTheKernel) {
  EXPECT_THROW(Launch("merge_partials", {DType::kFloat32, 64}).constant("kHasSink", true),
               std::logic_error);
  EXPECT_THROW(Launch("merge_partials", {DType::kFloat32, 64}).constant("kHasSinks", 1.0f),
               std::logic_error);
  Launch launch("merge_partials", {DType::kFloat32});
  EXPECT_THROW(launch.check(), std::logic_error);
}

// Bool or int, according to the constant's type.
void set(Launch& launch, const FunctionConstant& constant, bool value) {
  if (constant.type == "bool") {
    launch.constant(constant.name, value);
  } else {
    ASSERT_EQ(constant.type, "int");
    launch.constant(constant.name, value ? 3 : 0);
  }
}

TEST(Launch, EveryConstantIsInThePipelinesName) {
  for (const KernelSource& kernel : kernel_sources()) {
    Launch none(kernel.name);
    for (const FunctionConstant& constant : kernel.constants) set(none, constant, false);
    for (const FunctionConstant& changed : kernel.constants) {
      Launch other(kernel.name);
      for (const FunctionConstant& constant : kernel.constants)
        set(other, constant, constant.name == changed.name);
      EXPECT_NE(none.key().name(), other.key().name()) << kernel.name << changed.name;
    }
  }
}

TEST(Launch, AConstantCannotBeSetTwice) {
  Launch launch("merge_partials", {DType::kFloat32, 64});
  launch.constant("kHasSinks", true);
  EXPECT_THROW(launch.constant("kHasSinks", true), std::logic_error);
}

}  // namespace
}  // namespace octavo::metal

// Injects faults into the source of the norm: the simulator must detect each.
#include <gmock/gmock.h>

#include "kernels/metal/norm_params.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using testing::HasSubstr;

// The simulator's report for a layer norm of 4 rows of 300 floats, with one change in the kernel's
// text.
std::string fault_of_changed_text(const std::string& from, const std::string& to) {
  const metal::KernelSource& kernel = metal::find_kernel("norm_rows");
  std::string text = metal::instance_text(kernel, std::vector<std::string>{"float", "float"});
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  std::vector<float> x(1200, 1), weight(300, 1), bias(300, 1), out(1200);
  metal::NormParams params{.cols = 300, .groups = 1, .eps = 1e-5f};
  metal_sim::TextLaunch launch{.kernel = "norm_rows",
                               .instance = "norm_rows_float_float",
                               .text = text,
                               .constants = {{0, 1}, {1, 1}},
                               .groups = {4},
                               .threads = {metal::kNormThreads}};
  const auto add = [&](size_t index, auto* data, size_t bytes) {
    const metal::Parameter& parameter = kernel.parameters[index];
    launch.arguments.push_back({parameter.index, std::string(parameter.name), parameter.kind,
                                reinterpret_cast<std::byte*>(data), bytes});
  };
  add(0, x.data(), x.size() * sizeof(float));
  add(1, weight.data(), weight.size() * sizeof(float));
  add(2, bias.data(), bias.size() * sizeof(float));
  add(3, out.data(), out.size() * sizeof(float));
  add(4, &params, sizeof params);
  try {
    metal_sim::MetalSimulator().run_text(launch);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(MetalNorm, InjectedFaultsAreDetected) {
  EXPECT_EQ(fault_of_changed_text("float mean = 0;", "float mean = 0;"), "");
  EXPECT_THAT(fault_of_changed_text("threadgroup_barrier(mem_flags::mem_threadgroup);", ""),
              HasSubstr("uninitialised threadgroup memory"));
  EXPECT_THAT(fault_of_changed_text("  threadgroup_barrier(mem_flags::mem_threadgroup);\n  return",
                                    "  return"),
              HasSubstr("race: write of byte 0 of 'parts'"));
  EXPECT_THAT(fault_of_changed_text("i < cols", "i <= cols"),
              HasSubstr("out-of-bounds device read"));
  EXPECT_THAT(fault_of_changed_text("out[i] = T(value)", "out[i / 2] = T(value)"),
              HasSubstr("race: write of byte"));
}

}  // namespace
}  // namespace octavo

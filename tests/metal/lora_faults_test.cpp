// Faults in the kernels of LoRA adapters, which the tests must detect.
#include "metal/faulty_simulator.h"
#include "metal/lora_cases.h"

namespace octavo::metal_linear {
namespace {

TEST(MetalLora, FaultsAreDetected) {
  std::mt19937 random(64);
  const LoraCase made = random_lora_case(random, DType::kBFloat16, false, 40, 64);
  const mx::array x = random_array(random, {6, 64}, mx::bfloat16);
  const auto result = [&] {
    return floats_of(run(made, LoraForm::kGated, x, {3, kNoLora, 2, 1, 1, 0}));
  };
  const std::vector<float> expected = [&] {
    const SimulatedMetal metal;
    return result();
  }();
  const Fault faults[] = {
      {"the first slot's B", "lora_expand", "ulong(slot)", "ulong(0)"},
      {"no scale", "lora_expand", "sums[i] * scale", "sums[i]"},
      {"one rank too few", "lora_expand", "r < rank;", "r + 1 < rank;"},
      {"the first row's A x", "lora_expand", "inner + ulong(first)", "inner + ulong(0)"},
      {"the next layer's A x", "lora_expand", "params.inner_stride + params.inner_first",
       "params.inner_stride"},
      {"sums of an empty slot", "lora_expand", ": -0.0f", ": 1.0f"},
      {"rows without an adapter", "linear_rows", "if (place >= 0)", "if (place >= -1)"},
      {"a row instead of its place", "linear_rows", "to.lora_places[of_row]", "int(of_row)"},
      {"the gate's sums for up", "linear_rows", "up += sums[params.lora_firsts[1]]",
       "up += sums[first]"}};
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    FaultySimulator simulator(fault);
    const std::vector<float> actual = result();
    EXPECT_TRUE(simulator.was_put_in());
    EXPECT_TRUE(!simulator.found().empty() || !same_bits(expected, actual));
  }
}

}  // namespace
}  // namespace octavo::metal_linear

// Memory of a launch, counts, and primitives that run in the simulator.
#include "metal_sim/simulator.h"

#include <gmock/gmock.h>

#include "kernels/norm.h"
#include "kernels/runtime/primitive.h"
#include "metal_sim/text_kernel.h"

namespace octavo::metal_sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MetalSimulator, CountsWhatAKernelDoes) {
  const std::vector<float> in(64, 2.0f);
  std::vector<float> out(64);
  const struct {
    uint32_t n;
    float factor;
  } params{64, 3.0f};
  const KernelCounts counts =
      TextKernel(
          "struct P { uint n; float factor; };\n"
          "[[kernel]] void k(const device float4* in [[buffer(0)]], device float* out "
          "[[buffer(1)]],\n"
          "  constant P& p [[buffer(2)]], uint t [[thread_position_in_grid]]) {\n"
          "  const float4 x = in[t]; threadgroup_barrier(mem_flags::mem_none);\n"
          "  float sum = simd_shuffle_xor(fma(x.x, p.factor, x.y), 1);\n"
          "  sum += dot(x, float4(1));\n  out[t] = sum; \n}")
          .input("in", in)
          .output("out", out)
          .bytes("p", params)
          .grid({2}, {8})
          .run();
  EXPECT_EQ(counts.launches, 1u);
  EXPECT_EQ(counts.threads, 16u);
  EXPECT_EQ(counts.barriers, 2u);
  EXPECT_EQ(counts.simd_operations, 2u);
  EXPECT_EQ(counts.multiply_adds, 16u * 5);
  EXPECT_EQ(counts.arguments.at("in").loads, 16u);
  EXPECT_EQ(counts.arguments.at("in").load_bytes, 256u);
  EXPECT_EQ(counts.arguments.at("in").stores, 0u);
  EXPECT_EQ(counts.arguments.at("out").stores, 16u);
  EXPECT_EQ(counts.arguments.at("out").store_bytes, 64u);
  EXPECT_EQ(counts.arguments.at("p").load_bytes, 64u);
  EXPECT_EQ(out[0], 2 * 3 + 2 + 8);
}

TEST(MetalSimulator, AReadBeforeAWriteIsCounted) {
  std::vector<float> out(8, 1.0f);
  const KernelCounts counts = TextKernel(
                                  "[[kernel]] void k(device float* out [[buffer(0)]], uint t "
                                  "[[thread_position_in_grid]]) { out[t] += 1; }")
                                  .output("out", out)
                                  .grid({1}, {8})
                                  .run();
  EXPECT_EQ(counts.arguments.at("out").loads, 8u);
  EXPECT_EQ(counts.arguments.at("out").stores, 8u);
  EXPECT_EQ(out, std::vector<float>(8, 2.0f));
}

TEST(MetalSimulator, CountsAddUpUntilReset) {
  std::vector<float> out(8);
  TextLaunch launch{
      .kernel = "family",
      .instance = "k",
      .text =
          "#include <metal_stdlib>\nusing namespace metal;\n[[kernel]] void k(device float* out "
          "[[buffer(0)]], uint t [[thread_position_in_grid]]) { out[t] = t; }",
      .arguments = {{0, "out", metal::ParameterKind::kOutput,
                     reinterpret_cast<std::byte*>(out.data()), 32}},
      .groups = {2},
      .threads = {4}};
  MetalSimulator simulator;
  simulator.run_text(launch);
  simulator.run_text(launch);
  EXPECT_EQ(simulator.counts()["family"].launches, 2u);
  EXPECT_EQ(simulator.counts()["family"].arguments["out"].store_bytes, 64u);
  simulator.reset();
  EXPECT_TRUE(simulator.counts().empty());
}

TEST(MetalSimulator, ArgumentsOfOneBufferShareTheirMemory) {
  std::vector<int> pages = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int> view(pages.begin(), pages.end());
  const std::string text =
      "[[kernel]] void k(const device int* in [[buffer(0)]], device int* out [[buffer(1)]],\n"
      "  const device int* tail [[buffer(2)]], uint t [[thread_position_in_grid]]) {\n"
      "  out[t] = in[t] * 10; threadgroup_barrier(mem_flags::mem_device);\n"
      "  if (t == 0) out[7] = in[3] + tail[0];\n}";
  TextLaunch launch{.kernel = "k",
                    .instance = "k",
                    .text = "#include <metal_stdlib>\nusing namespace metal;\n" + text,
                    .groups = {1},
                    .threads = {4}};
  auto* bytes = reinterpret_cast<std::byte*>(pages.data());
  launch.arguments = {{0, "in", metal::ParameterKind::kInput, bytes, 32},
                      {1, "out", metal::ParameterKind::kOutput, bytes, 32},
                      {2, "tail", metal::ParameterKind::kInput, bytes + 16, 16}};
  MetalSimulator simulator;
  simulator.run_text(launch);
  EXPECT_THAT(pages, ElementsAre(10, 20, 30, 40, 5, 6, 7, 45));
}

TEST(MetalSimulator, InvalidSourceSaysWhy) {
  EXPECT_THAT(
      TextKernel("[[kernel]] void k(device float* out [[buffer(0)]]) {\n  out[0] = unknown(1);\n}")
          .fault(),
      testing::AllOf(HasSubstr("Metal source k is not valid"), HasSubstr("k.metal:4"),
                     HasSubstr("unknown")));
}

TEST(SimulatedMetal, ReplacesTheCpuDuringItsLifetime) {
  const mx::array x = mx::ones({2, 8});
  {
    SimulatedMetal metal;
    mx::array y = rms_norm(x, mx::ones({8}), 1e-5f);
    y.eval();
    EXPECT_EQ(metal.counts()["norm_rows"].launches, 1u);
    EXPECT_EQ(metal.counts()["norm_rows"].arguments["out"].store_bytes, 64u);
    EXPECT_EQ(metal.take_fault(), std::nullopt);
  }
  auto before = launch_counts();
  mx::array y = rms_norm(x, mx::ones({8}), 1e-5f);
  y.eval();
  EXPECT_EQ(launch_counts()["norm.cpu"], before["norm.cpu"] + 1);
}

TEST(SimulatedMetal, NewOutputsAreNaN) {
  SimulatedMetal metal;
  mx::array out({4}, mx::float16, nullptr, {});
  allocate(out);
  const auto* bits = reinterpret_cast<const uint16_t*>(out.data<mx::float16_t>());
  EXPECT_THAT(std::vector<uint16_t>(bits, bits + 4), testing::Each(0xFFFF));
}

TEST(SimulatedMetal, AFaultIsStoredUntilItIsTaken) {
  SimulatedMetal metal;
  std::byte value{};
  metal::BoundLaunch launch{};
  launch.kernel = &metal::find_kernel("norm_rows");
  launch.types = {"float", "float"};
  launch.constants = {{"kIsLayer", 0}, {"kHasBias", 0}};
  for (const metal::Parameter& parameter : launch.kernel->parameters)
    launch.arguments.push_back({&parameter, &value, 1});
  launch.threads = {256};
  metal::simulator()->run(launch);
  EXPECT_THAT(metal.take_fault().value_or(""), HasSubstr("Metal kernel norm_rows_float_float"));
  EXPECT_EQ(metal.take_fault(), std::nullopt);
}

}  // namespace
}  // namespace octavo::metal_sim

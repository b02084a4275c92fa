// Injects faults into the kernels of products with quantised weights: each must be detected, by the simulator
// or by the results. The start-up test of the two kernels must notice a kernel that computes something else.
#include <gmock/gmock.h>

#include "kernels/kernel_check.h"
#include "kernels/linear.h"
#include "kernels/metal/linear.h"
#include "kernels/metal/paged_attention.h"
#include "kernels/testing/weights.h"
#include "metal/faulty_simulator.h"

namespace octavo {
namespace {

// Rows enough for the kernel, with two slabs of units, or a gated pair.
void expect_found(const Fault& fault, int rows, bool is_gated = false) {
  SCOPED_TRACE(fault.name);
  std::mt19937 random(1);
  const auto projection = [&] {
    return Projection{random_affine(random, 40, 1088, 4, 64, DType::kFloat32), std::nullopt};
  };
  const Projection gate = projection(), up = projection();
  const mx::array x = random_array(random, {rows, 1088}, mx::bfloat16);
  const auto made = [&] {
    mx::array out =
        is_gated ? gated_linear(x, gate, up, Activation::kSilu, {}) : linear(x, gate.weight);
    out.eval();
    return out;
  };
  const mx::array expected = made();  // by the CPU
  FaultySimulator simulator(fault);
  const mx::array actual = made();
  EXPECT_TRUE(simulator.was_put_in());
  EXPECT_TRUE(!simulator.found().empty() || largest_difference(expected, actual) > 0);
}

TEST(MetalProductFaults, MissingBarriersAreDetected) {
  const Fault faults[] = {
      {"sums added before they are written", "integer_vector", kBarrier, "", 1},
      {"sums overwritten too early", "integer_vector", kBarrier, "", 0},
      {"rows read before they are written", "integer_vector", kLaneBarrier, "", 1}};
  for (const Fault& fault : faults) expect_found(fault, 8);
  expect_found({"rows overwritten too early", "integer_vector", kLaneBarrier, "", 0}, 1);
  const Fault many[] = {{"rows overwritten too early", "integer_matrix", kBarrier, "", 0},
                        {"rows read before they are written", "integer_matrix", kBarrier, "", 1}};
  for (const Fault& fault : many) expect_found(fault, 9);
  expect_found({"up overwrites rows", "integer_matrix", kBarrier, "", 2}, 9, true);
  expect_found({"up read before it is written", "integer_matrix", kBarrier, "", 3}, 9, true);
}

TEST(MetalProductFaults, WrongNumbersAreDetected) {
  const Fault faults[] = {
      {"rows of one bit less", "integer_vector", "exponent - 10", "exponent - 9"},
      {"the other unit's rows", "integer_vector", "(2 * r + side) * 16", "(2 * r) * 16"},
      {"a quad of the other field", "integer_vector", "field * lines_of_unit() + line", "line"},
      {"no offset", "integer_vector", "fma(missing_offset(), x_sum, sum)", "sum"},
      {"no bias", "integer_vector", "fma(scale.y, x_sum, rest[begin + s])", "0.0f"}};
  for (const Fault& fault : faults) expect_found(fault, 2);
  expect_found({"a word of the next line", "integer_matrix", "2 * i + own.col / 4", "2 * i"}, 9);
  expect_found(
      {"the row's neighbour", "integer_matrix", "8 * t + own.col + e", "8 * t + own.col + 1 - e"},
      9);
}

TEST(MetalProductFaults, TheStartUpTestNoticesADifference) {
  {
    const Fault none{"none", "integer_vector", "kNothing", "kNothing"};
    const FaultySimulator simulator(none);
    EXPECT_EQ(check_kernels(DType::kBFloat16), "");
    EXPECT_TRUE(metal::has_vector_products());
  }
  {
    const Fault wrong{"another sum", "integer_vector", "exponent - 10", "exponent - 9"};
    const FaultySimulator simulator(wrong);
    EXPECT_THAT(check_kernels(DType::kBFloat16),
                testing::HasSubstr("products of 1 rows with codes of 4 bits; the slower"));
    EXPECT_FALSE(metal::has_vector_products());
  }
  {
    const Fault wrong{"another score", "decode_attention", "fma(a[i], b[i], sum)",
                      "fma(a[i], b[i], sum * 1.001f)"};
    const FaultySimulator simulator(wrong);
    EXPECT_THAT(check_kernels(DType::kBFloat16),
                testing::HasSubstr("differ in attention; the slower"));
    EXPECT_TRUE(metal::has_vector_products());
    EXPECT_FALSE(metal::uses_vector_decode());
  }
  metal::set_vector_decode(true);
  EXPECT_EQ(check_kernels(DType::kBFloat16), "") << "the CPU has one kernel";
}

}  // namespace
}  // namespace octavo

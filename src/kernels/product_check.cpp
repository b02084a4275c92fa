#include "kernels/product_check.h"

#include <fmt/format.h>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/linear.h"
#include "kernels/metal/linear.h"
#include "kernels/metal/simulator.h"
#include "kernels/runtime/device.h"

namespace octavo {
namespace {

constexpr int kOutputs = 48, kInputs = 640;

bool runs_on_metal() {
  if (const metal::Simulator* simulator = metal::simulator()) return simulator->executes();
  return device_facts().kind == DeviceKind::kMetal;
}

// Numbers between -1 and 1, all of which bfloat16 holds.
std::vector<float> short_numbers(std::mt19937& random, int count) {
  std::vector<float> numbers;
  for (int i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(static_cast<int>(random() % 255) - 127) / 128.0f);
  return numbers;
}

Weight some_weight(std::mt19937& random, int bits) {
  constexpr int kGroup = 64;
  std::vector<std::byte> codes(static_cast<size_t>(kOutputs) * kInputs * static_cast<size_t>(bits) /
                               8);
  for (std::byte& byte : codes) byte = static_cast<std::byte>(random() % 256);
  const std::vector<float> scales = short_numbers(random, kOutputs * kInputs / kGroup);
  const std::vector<float> biases = short_numbers(random, kOutputs * kInputs / kGroup);
  return make_affine_weight(kOutputs, kInputs,
                            {.bits = bits,
                             .group_size = kGroup,
                             .scale_dtype = DType::kFloat32,
                             .packed = codes,
                             .scales = std::as_bytes(std::span(scales)),
                             .biases = std::as_bytes(std::span(biases))});
}

mx::array product(const mx::array& x, const Weight& weight, bool by_vectors) {
  metal::set_vector_products(by_vectors);
  LinearOptions options;
  options.out_dtype = mx::float32;
  mx::array out = linear(x, weight, options);
  out.eval();
  return out;
}

bool have_same_bits(const mx::array& a, const mx::array& b) {
  return std::memcmp(a.data<float>(), b.data<float>(), a.nbytes()) == 0;
}

}  // namespace

std::string check_products(DType dtype) {
  if (!runs_on_metal() || dtype == DType::kFloat32) return {};
  std::mt19937 random(1);
  for (int bits : {4, 8}) {
    const Weight weight = some_weight(random, bits);
    for (int rows : {1, 2, 4, 8}) {
      const std::vector<float> numbers = short_numbers(random, rows * kInputs);
      const mx::array x = mx::astype(mx::array(numbers.data(), {rows, kInputs}), mlx_dtype(dtype));
      const mx::array by_matrices = product(x, weight, false);
      if (have_same_bits(product(x, weight, true), by_matrices)) continue;
      metal::set_vector_products(false);
      return fmt::format(
          "Metal: the kernels for few and for many rows differ in {} bits and {} rows on this GPU; "
          "the slower "
          "one computes all products. Please report this",
          bits, rows);
    }
  }
  return {};
}

}  // namespace octavo

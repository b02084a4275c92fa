#include "kernels/kernel_check.h"

#include <fmt/format.h>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/linear.h"
#include "kernels/metal/attention_agreement.h"
#include "kernels/metal/linear.h"
#include "kernels/metal/paged_attention.h"
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

// Bits and rows of the first product that differs; empty: none.
std::string differing_product(DType dtype) {
  std::mt19937 random(1);
  for (int bits : {4, 8}) {
    const Weight weight = some_weight(random, bits);
    for (int rows : {1, 2, 4, 8}) {
      const std::vector<float> numbers = short_numbers(random, rows * kInputs);
      const mx::array x = mx::astype(mx::array(numbers.data(), {rows, kInputs}), mlx_dtype(dtype));
      const mx::array by_matrices = product(x, weight, false);
      if (!have_same_bits(product(x, weight, true), by_matrices))
        return fmt::format("products of {} rows with codes of {} bits", rows, bits);
    }
  }
  return {};
}

bool attention_agrees(DType dtype) {
  constexpr int kHead = 128, kHeads = 8;
  return metal::attention_kernels_agree(
      {.block_tokens = 16, .kv_heads = 2, .k_dim = kHead, .v_dim = kHead, .dtype = dtype}, kHeads);
}

}  // namespace

std::string check_kernels(DType dtype) {
  if (!runs_on_metal()) return {};
  std::string differing;
  if (dtype != DType::kFloat32) differing = differing_product(dtype);
  metal::set_vector_products(differing.empty());
  if (!attention_agrees(dtype)) {
    metal::set_vector_decode(false);
    differing += differing.empty() ? "attention" : " and attention";
  }
  if (differing.empty()) return {};
  return fmt::format(
      "Metal: on this GPU, the kernels for few and for many rows differ in {}; the slower ones are "
      "used. "
      "Please report this",
      differing);
}

}  // namespace octavo

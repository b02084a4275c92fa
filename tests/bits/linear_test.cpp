// Bitwise batch invariance of linear: a row's bits on every instruction set, for every weight
// format, alone and in batches of every size, with one thread and with all.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "base/compute_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/linear.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/support.h"
#include "kernels/testing/weights.h"

namespace octavo {
namespace {

constexpr int kLinearRows[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  11,  12,  13,
                               14, 15, 16, 17, 18, 19, 20, 21, 22,  23,  24,  25,  26,
                               27, 28, 29, 30, 31, 32, 33, 64, 127, 128, 129, 257, 512};
constexpr int kInputs = 256;

// `rows` rows of noise with `probe` at `place`.
mx::array batch_of(const std::vector<uint16_t>& noise, const std::vector<uint16_t>& probe, int rows,
                   int place, mx::Dtype dtype) {
  mx::array x = make_device_buffer({rows, kInputs}, dtype);
  std::memcpy(x.data<void>(), noise.data(), x.nbytes());
  std::memcpy(x.data<std::byte>() + static_cast<size_t>(place) * kInputs * mx::size_of(dtype),
              probe.data(), kInputs * mx::size_of(dtype));
  return x;
}

std::vector<std::byte> row_bits(const mx::array& y, int row) {
  const size_t bytes = y.nbytes() / static_cast<size_t>(y.shape(0));
  const auto* from = y.data<std::byte>() + static_cast<size_t>(row) * bytes;
  return {from, from + bytes};
}

// Random numbers of moderate size as the bits of `dtype`.
std::vector<uint16_t> random_bits(std::mt19937& random, size_t count, mx::Dtype dtype) {
  const auto values = floats_of(random_array(random, {static_cast<int>(count)}));
  mx::array typed = mx::astype(mx::array(values.begin(), {static_cast<int>(count)}), dtype);
  typed.eval();
  std::vector<uint16_t> bits(typed.nbytes() / 2);
  std::memcpy(bits.data(), typed.data<void>(), typed.nbytes());
  return bits;
}

// Larger batches would take the scalar set minutes: its multiply-add is many operations.
int most_rows() { return cpu::active_isa() == cpu::Isa::kScalar ? 64 : 512; }

// Comparisons of one product: with 1 and 2 threads, one for a single row and three for each batch.
int comparisons_per_product() {
  const auto fits = [](int rows) { return rows <= most_rows(); };
  return 2 * (3 * static_cast<int>(std::ranges::count_if(kLinearRows, fits)) - 2);
}

using Product = std::function<mx::array(const mx::array&)>;

// Number of comparisons; every one must be equal.
int compare_batches(const Product& product, mx::Dtype dtype, std::mt19937& random) {
  const auto probe = random_bits(random, kInputs, dtype);
  const auto noise = random_bits(random, size_t{512} * kInputs, dtype);
  mx::array alone = product(batch_of(noise, probe, 1, 0, dtype));
  alone.eval();
  const auto expected = row_bits(alone, 0);
  int cases = 0;
  for (int threads : {1, 2}) {
    compute_pool().limit_threads(threads);
    for (int rows : kLinearRows) {
      if (rows > most_rows()) continue;
      for (int place : {0, rows / 2, rows - 1}) {
        mx::array y = product(batch_of(noise, probe, rows, place, dtype));
        y.eval();
        EXPECT_EQ(row_bits(y, place), expected) << rows << " rows, row " << place;
        ++cases;
        if (rows == 1) break;
      }
    }
  }
  compute_pool().limit_threads(1 << 20);
  return cases;
}

class BitsLinear : public IsaTest {};

TEST_P(BitsLinear, EveryFormatInEveryBatch) {
  std::mt19937 random(7);
  int cases = 0;
  for (const Weight& weight : every_format(random, 37, kInputs)) {
    SCOPED_TRACE(weight.describe());
    const Product product = [&](const mx::array& x) { return linear(x, weight); };
    cases += compare_batches(product, mx::bfloat16, random);
    if (weight.layout.bits == 0 || weight.layout.bits == 4) {
      cases += compare_batches(product, mx::float16, random);
      cases += compare_batches(product, mx::float32, random);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(cases,
            56 * comparisons_per_product());  // 32 formats, 12 of them with three types of rows
  RecordProperty("cases", cases);
  std::printf("%d cases on %s\n", cases, std::string(cpu::name_of(GetParam())).c_str());
}

TEST_P(BitsLinear, GateAndUpOfDifferentFormats) {
  std::mt19937 random(9);
  const auto weights = every_format(random, 37, kInputs);
  int cases = 0;
  for (size_t i = 2; i + 1 < weights.size(); i += 4) {
    for (const auto& [gate, up] :
         {std::pair(i, weights.size() - 1 - i), std::pair(size_t{2}, i + 1)}) {
      const Projection first{weights[gate], std::nullopt}, second{weights[up], std::nullopt};
      SCOPED_TRACE(weights[gate].describe() + " with " + weights[up].describe());
      const Product product = [&](const mx::array& x) {
        return gated_linear(x, first, second, Activation::kSilu);
      };
      cases += compare_batches(product, mx::bfloat16, random);
      const mx::array x = random_array(random, {21, kInputs}, mx::bfloat16);
      LinearOptions reference;
      reference.path = KernelPath::kReference;
      const mx::array expected = gated_linear(x, first, second, Activation::kSilu, reference);
      float scale = 1;
      for (float value : floats_of(expected)) scale = std::max(scale, std::abs(value));
      EXPECT_LT(largest_difference(product(x), expected), 0.02f * scale);
    }
  }
  EXPECT_GE(cases, 16 * comparisons_per_product());  // 16 pairs of formats
  std::printf("%d cases on %s\n", cases, std::string(cpu::name_of(GetParam())).c_str());
}

TEST_P(BitsLinear, FusedFormsInEveryBatch) {
  std::mt19937 random(8);
  int cases = 0;
  for (const char* kind : {"bfloat16", "affine 4-bit/64", "q6_k"}) {
    std::vector<Weight> weights;
    for (int i = 0; i < 3; ++i) {
      for (const Weight& weight : every_format(random, i == 1 ? 37 : 64, kInputs)) {
        if (weight.describe() == kind) {
          weights.push_back(weight);
          break;
        }
      }
    }
    const NormSpec norm{random_array(random, {kInputs}), 1e-5f};
    LinearOptions options;
    options.norm = norm;
    const std::vector<Projection> joined = {{weights[0], random_array(random, {64})},
                                            {weights[1], random_array(random, {37})},
                                            {weights[2], std::nullopt}};
    cases += compare_batches([&](const mx::array& x) { return joined_linear(x, joined, options); },
                             mx::bfloat16, random);
    cases += compare_batches(
        [&](const mx::array& x) {
          return gated_linear(x, {weights[0], std::nullopt}, {weights[2], std::nullopt},
                              Activation::kSilu, options);
        },
        mx::bfloat16, random);
    cases += compare_batches(
        [&](const mx::array& x) {
          LinearOptions with_residual;
          with_residual.residual = mx::contiguous(mx::slice(x, {0, 0}, {x.shape(0), 37}));
          with_residual.scale = 0.22f;
          return linear(x, weights[1], with_residual);
        },
        mx::bfloat16, random);
    cases += compare_batches(
        [&](const mx::array& x) {
          LinearOptions capped;
          capped.scale = 0.5f;
          capped.soft_cap = 30;
          capped.out_dtype = mx::float32;
          return linear(x, weights[1], capped);
        },
        mx::bfloat16, random);
    if (HasFailure()) return;
  }
  EXPECT_GE(cases, 12 * comparisons_per_product());  // 4 forms of 3 formats
  std::printf("%d cases on %s\n", cases, std::string(cpu::name_of(GetParam())).c_str());
}

OCTAVO_FOR_EVERY_ISA(BitsLinear);

}  // namespace
}  // namespace octavo

// LoRA adapters: the bits of kernels/reference/arithmetic/lora.h on every instruction set, for every
// weight format; rows without an adapter keep their bits, and adapter rows have the same bits alone and
// mixed with others in any order.
#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <string>

#include "kernels/cpu/isa.h"
#include "kernels/linear.h"
#include "kernels/reference/arithmetic/dense_product.h"
#include "kernels/reference/arithmetic/lora.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/lora.h"

namespace octavo {
namespace {

const std::vector<int> kRanks = {16, 1, 0, 37, 8};

// A x of one row as dense_product.h defines it. a: [rank, inputs]
std::vector<float> inner_products(mx::Dtype dtype, std::span<const float> x,
                                  std::span<const float> a) {
  const auto bits_of = [](std::span<const float> numbers) {
    std::vector<uint16_t> bits;
    for (const float number : numbers) bits.push_back(float_to_bf16(number));
    return bits;
  };
  std::vector<float> out;
  for (size_t first = 0; first < a.size(); first += x.size()) {
    const auto row = a.subspan(first, x.size());
    out.push_back(dtype == mx::bfloat16 ? arithmetic::dot_bf16(bits_of(x), bits_of(row))
                                        : arithmetic::dot_f32(x, row));
  }
  return out;
}

// The definition, from the product without adapters.
std::vector<float> defined(const mx::array& product, const mx::array& x,
                           const std::vector<int32_t>& slots, const LoraMatrices& matrices) {
  std::vector<float> out = floats_of(product);
  const std::vector<float> rows = floats_of(x);
  const auto outputs = static_cast<size_t>(product.shape(1));
  const auto inputs = static_cast<size_t>(x.shape(1));
  std::vector<std::vector<float>> all_a, all_b;
  for (int slot = 0; slot < matrices.shape.slots; ++slot) {
    all_a.push_back(floats_of(lora_a(matrices, slot)));
    all_b.push_back(floats_of(lora_b(matrices, slot)));
  }
  for (size_t row = 0; row < slots.size(); ++row) {
    if (slots[row] == kNoLora) continue;
    const auto index = static_cast<size_t>(slots[row]);
    const LoraSlot slot = matrices.slots[index];
    if (slot.rank == 0) continue;
    const std::span<const float> b = all_b[index];
    const std::vector<float> inner =
        inner_products(x.dtype(), std::span(rows).subspan(row * inputs, inputs), all_a[index]);
    for (size_t n = 0; n < outputs; ++n) {
      const auto of_output = b.subspan(n * inner.size(), inner.size());
      float& value = out[row * outputs + n];
      value = arithmetic::add_lora(value, inner, of_output, slot.scale);
    }
  }
  return out;
}

LinearOptions with_lora(const std::vector<int32_t>& slots,
                        std::vector<const LoraMatrices*> layers) {
  LinearOptions options;
  options.lora = LoraOptions{LoraRows(slots), std::move(layers)};
  return options;
}

// 33 rows: two blocks and a part of one.
void compare_with_definition(std::mt19937& random, const Weight& weight, DType dtype,
                             const std::vector<int>& ranks = kRanks, int rows = 33) {
  const LoraMatrices matrices = random_lora(random, ranks, weight.cols, weight.rows, dtype);
  const mx::array x = random_array(random, {rows, weight.cols}, mlx_dtype(dtype));
  const auto slots = random_slots(random, rows, static_cast<int>(ranks.size()));
  LinearOptions options = with_lora(slots, {&matrices});
  LinearOptions plain;
  options.out_dtype = plain.out_dtype = mx::float32;
  std::vector<float> expected;
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    SCOPED_TRACE(weight.describe() + " " + std::string(cpu::name_of(isa)));
    if (expected.empty()) expected = defined(linear(x, weight, plain), x, slots, matrices);
    const mx::array actual = launching("lora.cpu", [&] { return linear(x, weight, options); });
    ASSERT_TRUE(same_bits(floats_of(actual), expected));
  }
}

TEST(BitsLora, EveryFormatHasTheBitsOfTheDefinitionOnEverySet) {
  std::mt19937 random(31);
  for (const Weight& weight : every_format(random, 37, 256)) {
    compare_with_definition(random, weight, DType::kBFloat16);
    if (weight.layout.bits == 0 || weight.layout.bits == 4) {
      compare_with_definition(random, weight, DType::kFloat16);
      compare_with_definition(random, weight, DType::kFloat32);
    }
    if (testing::Test::HasFailure()) return;
  }
}

// Up to 32 rows, the tile unit multiplies all rows by every adapter; if the ranks are alike, by the
// adapters of all slots at once.
TEST(BitsLora, FewRowsHaveTheBitsOfTheDefinitionOnEverySet) {
  std::mt19937 random(36);
  for (const std::vector<int>& ranks : {std::vector<int>{16, 9, 16, 1}, kRanks}) {
    for (const int rows : {5, 32}) {
      const Weight dense = random_dense(random, 37, 256, DType::kBFloat16);
      compare_with_definition(random, dense, DType::kBFloat16, ranks, rows);
      const Weight codes = random_affine(random, 37, 256, 4, 64, DType::kBFloat16);
      compare_with_definition(random, codes, DType::kBFloat16, ranks, rows);
    }
  }
}

TEST(BitsLora, RanksUpTo256HaveTheBitsOfTheDefinition) {
  std::mt19937 random(32);
  const Weight weight = random_dense(random, 50, 200, DType::kBFloat16);
  const LoraMatrices matrices = random_lora(random, {256, 64, 255}, 200, 50, DType::kBFloat16);
  const mx::array x = random_array(random, {7, 200}, mx::bfloat16);
  const std::vector<int32_t> slots = {0, 1, 2, kNoLora, 0, 2, 0};
  LinearOptions options = with_lora(slots, {&matrices});
  LinearOptions plain;
  options.out_dtype = plain.out_dtype = mx::float32;
  EXPECT_TRUE(same_bits(floats_of(linear(x, weight, options)),
                        defined(linear(x, weight, plain), x, slots, matrices)));
}

// sum + b * a, each operation rounded: the numbers of a merged table.
std::vector<float> defined_embedding(const mx::array& table, const mx::array& tokens,
                                     const std::vector<int32_t>& slots,
                                     const LoraMatrices& matrices) {
  std::vector<float> out = floats_of(mx::take(table, tokens, 0));
  const std::vector<float> ids = floats_of(mx::astype(tokens, mx::float32));
  const size_t width = out.size() / slots.size();
  for (size_t row = 0; row < slots.size(); ++row) {
    if (slots[row] == kNoLora) continue;
    const LoraSlot slot = matrices.slots[static_cast<size_t>(slots[row])];
    const std::vector<float> a = floats_of(lora_a(matrices, slots[row]));
    const std::vector<float> b = floats_of(lora_b(matrices, slots[row]));
    const auto rank = static_cast<size_t>(slot.rank);
    for (size_t k = 0; k < width; ++k) {
      float sum = 0;
      for (size_t r = 0; r < rank; ++r)
        sum += b[static_cast<size_t>(ids[row]) * rank + r] * a[r * width + k];
      out[row * width + k] += slot.scale * sum;
    }
  }
  return out;
}

TEST(BitsLora, EmbeddingsHaveTheBitsOfTheDefinitionOnEverySet) {
  std::mt19937 random(35);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Weight table = random_dense(random, 53, 200, dtype);
    const LoraMatrices matrices = random_lora(random, {16, 1, 37}, 200, 53, dtype);
    const mx::array tokens({0, 52, 16, 31, 52});
    const std::vector<int32_t> slots = {0, 2, kNoLora, 1, 0};
    const auto expected = defined_embedding(dequantize(table), tokens, slots, matrices);
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      const LoraOptions lora{LoraRows(slots), {&matrices}};
      const mx::array actual = launching("lora.cpu", [&] {
        return embed(table, tokens, mx::float32, KernelPath::kNative, 1, lora);
      });
      EXPECT_TRUE(same_bits(floats_of(actual), expected))
          << name_of(dtype) << " " << cpu::name_of(isa);
    }
  }
}

// The forms that models use, on rows [0, 64) in one order.
enum class Form { kJoined, kGated, kResidual };

struct Case {
  std::vector<Projection> layers;
  std::vector<LoraMatrices> lora;
  NormSpec norm;
};

mx::array run(const Case& made, Form form, const mx::array& x, const mx::array& residual,
              const std::vector<int32_t>& slots) {
  const auto options = [&](size_t parts) {
    std::vector<const LoraMatrices*> layers;
    for (size_t i = 0; i < parts; ++i) layers.push_back(&made.lora[i]);
    if (parts == 3) layers[1] = nullptr;  // as an adapter of q and v alone
    return with_lora(slots, layers);
  };
  mx::array out = x;
  if (form == Form::kJoined) {
    LinearOptions joined = options(3);
    joined.norm = made.norm;
    out = joined_linear(x, made.layers, joined);
  } else if (form == Form::kGated) {
    LinearOptions gated = options(2);
    gated.norm = made.norm;
    out = gated_linear(x, made.layers[0], made.layers[1], Activation::kSilu, gated);
  } else {
    LinearOptions added = options(1);
    added.bias = made.layers[0].bias;
    added.residual = residual;
    added.scale = 0.22f;
    out = linear(x, made.layers[0].weight, added);
  }
  out.eval();
  return out;
}

std::vector<std::byte> bits_of_row(const mx::array& y, int row) {
  const size_t bytes = y.nbytes() / static_cast<size_t>(y.shape(0));
  const auto* from = y.data<std::byte>() + static_cast<size_t>(row) * bytes;
  return {from, from + bytes};
}

class BitsLoraBatches : public IsaTest {};

// Every row alone; then all of them, and parts of them, in several orders.
void compare_orders(std::mt19937& random, const Case& made, Form form, mx::Dtype dtype) {
  constexpr int kRows = 64;
  const int inputs = made.layers[0].weight.cols, outputs = made.layers[0].weight.rows;
  const mx::array x = random_array(random, {kRows, inputs}, dtype);
  const mx::array residual = random_array(random, {kRows, outputs}, dtype);
  const auto slots = random_slots(random, kRows, static_cast<int>(kRanks.size()));
  std::vector<std::vector<std::byte>> alone;
  for (int row = 0; row < kRows; ++row)
    alone.push_back(
        bits_of_row(run(made, form, rows_of(x, row, row + 1), rows_of(residual, row, row + 1),
                        {slots[static_cast<size_t>(row)]}),
                    0));
  const mx::array plain = run(made, form, x, residual, std::vector<int32_t>(kRows, kNoLora));
  std::vector<int> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  for (const int count : {64, 2, 5, 16, 17, 33, 64}) {
    const mx::array chosen(order.begin(), {count});
    std::vector<int32_t> chosen_slots;
    for (int i = 0; i < count; ++i)
      chosen_slots.push_back(slots[static_cast<size_t>(order[static_cast<size_t>(i)])]);
    const mx::array mixed = run(made, form, mx::contiguous(mx::take(x, chosen, 0)),
                                mx::contiguous(mx::take(residual, chosen, 0)), chosen_slots);
    for (int i = 0; i < count; ++i) {
      const int row = order[static_cast<size_t>(i)];
      ASSERT_EQ(bits_of_row(mixed, i), alone[static_cast<size_t>(row)]) << count << " rows";
      const int32_t slot = slots[static_cast<size_t>(row)];
      const bool changes = slot != kNoLora && kRanks[static_cast<size_t>(slot)] > 0;
      ASSERT_EQ(bits_of_row(mixed, i) != bits_of_row(plain, row), changes) << "row " << row;
    }
    std::ranges::shuffle(order, random);
  }
}

TEST_P(BitsLoraBatches, RowsHaveTheSameBitsAloneAndInEveryOrder) {
  std::mt19937 random(33);
  constexpr int kColumns = 128, kOutputs = 53;
  for (const char* kind : {"bfloat16", "float16", "float32", "affine 4-bit/64", "q6_k"}) {
    if (cpu::active_isa() == cpu::Isa::kScalar && std::string(kind) == "q6_k") continue;
    const int inputs = std::string(kind) == "q6_k" ? 256 : kColumns;
    const mx::Dtype dtype = std::string(kind) == "float16"   ? mx::float16
                            : std::string(kind) == "float32" ? mx::float32
                                                             : mx::bfloat16;
    Case made{{}, {}, {random_array(random, {inputs}), 1e-5f}};
    for (int i = 0; i < 3; ++i) {
      const Weight weight =
          std::string(kind) == "q6_k" ? random_gguf(random, kOutputs, inputs, WeightFormat::kQ6_K)
          : std::string(kind) == "affine 4-bit/64"
              ? random_affine(random, kOutputs, inputs, 4, 64, DType::kFloat32)
              : random_dense(random, kOutputs, inputs, dtype_of(mx::zeros({1}, dtype)));
      made.layers.push_back({weight, random_array(random, {kOutputs})});
      made.lora.push_back(
          random_lora(random, kRanks, inputs, kOutputs, dtype_of(mx::zeros({1}, dtype))));
    }
    for (const Form form : {Form::kJoined, Form::kGated, Form::kResidual}) {
      SCOPED_TRACE(testing::Message() << kind << ", form " << static_cast<int>(form));
      compare_orders(random, made, form, dtype);
      if (HasFailure()) return;
    }
  }
}

// Prefill: more rows than one pass of a kernel, one adapter in the middle.
TEST_P(BitsLoraBatches, LongRunsHaveTheBitsOfSingleRows) {
  std::mt19937 random(34);
  const int rows = cpu::active_isa() == cpu::Isa::kScalar ? 70 : 300;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    const Weight weight = random_dense(random, 50, 128, dtype);
    const LoraMatrices matrices = random_lora(random, {24, 16}, 128, 50, dtype);
    const mx::array x = random_array(random, {rows, 128}, mlx_dtype(dtype));
    std::vector<int32_t> slots(static_cast<size_t>(rows), 1);
    std::fill(slots.begin() + 20, slots.begin() + 61, 0);
    slots[30] = slots.back() = kNoLora;
    mx::array whole = linear(x, weight, with_lora(slots, {&matrices}));
    whole.eval();
    for (const int row : {0, 19, 20, 30, 31, 60, 61, rows - 2, rows - 1}) {
      mx::array alone = linear(rows_of(x, row, row + 1), weight,
                               with_lora({slots[static_cast<size_t>(row)]}, {&matrices}));
      alone.eval();
      EXPECT_EQ(bits_of_row(whole, row), bits_of_row(alone, 0)) << row;
    }
  }
}

OCTAVO_FOR_EVERY_ISA(BitsLoraBatches);

}  // namespace
}  // namespace octavo

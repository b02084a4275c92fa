#include "kernels/lora.h"

#include <functional>
#include <utility>

#include "base/error.h"
#include "kernels/linear.h"
#include "kernels/testing/lora.h"

namespace octavo {
namespace {

TEST(LoraPlan, GroupsRowsBySlotAndBlock) {
  std::vector<int32_t> slots(34, kNoLora);
  slots[1] = slots[17] = slots[33] = 2;
  slots[0] = slots[18] = 0;
  const LoraPlan plan = make_lora_plan(slots);
  EXPECT_EQ(plan.order, (std::vector<int32_t>{0, 18, 1, 17, 33}));
  EXPECT_EQ(plan.groups_of, (std::vector<int32_t>{0, 0, 1, 1, 1}));
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[1].slot, 2);
  EXPECT_EQ(plan.groups[1].first, 2);
  EXPECT_EQ(plan.groups[1].count, 3);
  EXPECT_EQ(plan.block_begins, (std::vector<int32_t>{0, 2, 4, 5}));
  EXPECT_EQ(plan.block_places, (std::vector<int32_t>{0, 2, 1, 3, 4}));
}

LoraSource source_of(const mx::array& a, const mx::array& b, float scale) {
  return {
      .rank = a.shape(0), .scale = scale, .dtype = dtype_of(a), .a = bytes_of(a), .b = bytes_of(b)};
}

TEST(LoraMatrices, ASlotReturnsWhatWasWritten) {
  std::mt19937 random(1);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    LoraMatrices matrices = make_lora_matrices(
        {.slots = 3, .max_rank = 20, .inputs = 70, .outputs = 37, .dtype = dtype});
    const mx::array a = random_array(random, {18, 70}), b = random_array(random, {37, 18});
    write_lora(matrices, 1, source_of(a, b, 2));
    const auto rounded = [&](const mx::array& x) { return mx::astype(x, mlx_dtype(dtype)); };
    EXPECT_EQ(largest_difference(lora_a(matrices, 1), rounded(a)), 0);
    EXPECT_EQ(largest_difference(lora_b(matrices, 1), rounded(b)), 0);
    EXPECT_EQ(matrices.slots[1].scale, 2);
    EXPECT_EQ(matrices.slots[0].rank, 0);
    clear_lora(matrices, 1);
    EXPECT_EQ(matrices.slots[1].rank, 0);
  }
}

TEST(LoraMatrices, AcceptsMlxLmsFormAndTheOrderOfAPart) {
  std::mt19937 random(2);
  const mx::array a = random_array(random, {4, 70}), b = random_array(random, {50, 4});
  const mx::array at = mx::contiguous(mx::transpose(a)), bt = mx::contiguous(mx::transpose(b));
  mx::eval(at, bt);
  std::vector<int> order;
  for (int n = 0; n < 20; ++n) order.push_back(49 - 2 * n);
  LoraMatrices matrices =
      make_lora_matrices({.slots = 1, .max_rank = 8, .inputs = 70, .outputs = 20});
  LoraSource source = source_of(a, b, 1);
  source.a = bytes_of(at);
  source.b = bytes_of(bt);
  source.is_transposed = true;
  source.output_order = order;
  source.file_outputs = 50;
  write_lora(matrices, 0, source);
  EXPECT_EQ(largest_difference(lora_a(matrices, 0), a), 0);
  const mx::array rows = mx::take(b, mx::array(order.begin(), {20}), 0);
  EXPECT_EQ(largest_difference(lora_b(matrices, 0), rows), 0);
}

TEST(LoraMatrices, RefusesNumbersThatAreNotFiniteInTheModelsType) {
  LoraMatrices matrices = make_lora_matrices(
      {.slots = 1, .max_rank = 1, .inputs = 1, .outputs = 1, .dtype = DType::kFloat16});
  const mx::array large = mx::full({1, 1}, 1e6f), one = mx::full({1, 1}, 1.0f);
  mx::eval(large, one);
  EXPECT_THROW(write_lora(matrices, 0, source_of(large, one, 1)), SetupError);
  EXPECT_THROW(write_lora(matrices, 0, source_of(one, large, 1)), SetupError);
  EXPECT_EQ(matrices.slots[0].rank, 0);
}

TEST(Lora, TheReferenceAddsEachRowsOwnAdapter) {
  std::mt19937 random(3);
  const Weight weight = random_dense(random, 37, 70, DType::kFloat32);
  LoraMatrices matrices =
      make_lora_matrices({.slots = 2, .max_rank = 8, .inputs = 70, .outputs = 37});
  const mx::array a0 = random_array(random, {8, 70}), b0 = random_array(random, {37, 8});
  const mx::array a1 = random_array(random, {3, 70}), b1 = random_array(random, {37, 3});
  write_lora(matrices, 0, source_of(a0, b0, 0.5f));
  write_lora(matrices, 1, source_of(a1, b1, 2));
  const mx::array x = random_array(random, {3, 70});
  LinearOptions options;
  options.path = KernelPath::kReference;
  const mx::array plain = linear(x, weight, options);
  const std::vector<int32_t> slots = {1, kNoLora, 0};
  options.lora = LoraOptions{LoraRows(slots), {&matrices}};
  const mx::array mixed = linear(x, weight, options);
  const auto merged = [&](int row, const mx::array& a, const mx::array& b, float scale) {
    const mx::array sum =
        mx::add(dequantize(weight), mx::multiply(mx::array(scale), mx::matmul(b, a)));
    return mx::matmul(rows_of(x, row, row + 1), mx::transpose(sum));
  };
  EXPECT_LT(largest_difference(rows_of(mixed, 0, 1), merged(0, a1, b1, 2)), 1e-3f);
  EXPECT_TRUE(same_bits(floats_of(rows_of(mixed, 1, 2)), floats_of(rows_of(plain, 1, 2))));
  EXPECT_LT(largest_difference(rows_of(mixed, 2, 3), merged(2, a0, b0, 0.5f)), 1e-3f);
}

// The table is a weight [tokens, width], so B has a row per token.
TEST(Lora, RowsOfEmbeddingsHaveTheBitsOfRowsAlone) {
  std::mt19937 random(7);
  constexpr int kTokens = 37, kWidth = 70, kRows = 6;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(name_of(dtype));
    const Weight table = random_dense(random, kTokens, kWidth, dtype);
    const LoraMatrices lora = random_lora(random, {16, 5, 0}, kWidth, kTokens, dtype);
    const std::vector<int32_t> slots = {1, kNoLora, 0, 2, 1, 0};
    const mx::array tokens({3, 36, 16, 7, 3, 0});
    const auto run = [&](const mx::array& own, const std::vector<int32_t>& own_slots,
                         KernelPath path) {
      return embed(table, own, mlx_dtype(dtype), path, 2.5f,
                   LoraOptions{LoraRows(own_slots), {&lora}});
    };
    const mx::array mixed =
        launching("lora.cpu", [&] { return run(tokens, slots, KernelPath::kNative); });
    expect_close(
        launching("lora.reference", [&] { return run(tokens, slots, KernelPath::kReference); }),
        mixed, dtype == DType::kFloat32 ? 1e-5f : 2e-2f);
    const mx::array plain = embed(table, tokens, mlx_dtype(dtype), KernelPath::kNative, 2.5f);
    for (int row = 0; row < kRows; ++row) {
      const int32_t slot = slots[static_cast<size_t>(row)];
      const bool is_base = slot == kNoLora || slot == 2;
      const mx::array own = rows_of(plain, row, row + 1);
      const mx::array alone =
          is_base ? own : run(rows_of(tokens, row, row + 1), {slot}, KernelPath::kNative);
      EXPECT_TRUE(same_bits(floats_of(rows_of(mixed, row, row + 1)), floats_of(alone))) << row;
      EXPECT_EQ(largest_difference(alone, own) > 0.01f, !is_base) << row;
    }
  }
}

// Scaled by the largest number of the expected result.
void compare_paths(const std::function<mx::array(KernelPath)>& run, mx::Dtype dtype) {
  const mx::array expected =
      launching("lora.reference", [&] { return run(KernelPath::kReference); });
  const mx::array actual = launching("lora.cpu", [&] { return run(KernelPath::kNative); });
  expect_close(expected, actual,
               dtype == mx::float32 ? 1e-5f : (dtype == mx::float16 ? 2e-3f : 2e-2f));
}

TEST(Lora, EveryFormEqualsTheReference) {
  std::mt19937 random(4);
  constexpr int kInputs = 256, kOutputs = 37;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const Weight& weight : {random_dense(random, kOutputs, kInputs, dtype),
                                 random_affine(random, kOutputs, kInputs, 4, 64, dtype)}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << weight.describe());
      const Projection layer{weight, random_array(random, {kOutputs})};
      const LoraMatrices lora = random_lora(random, {16, 5, 0}, kInputs, kOutputs, dtype);
      const mx::array x = random_array(random, {19, kInputs}, mlx_dtype(dtype));
      const mx::array residual = random_array(random, {19, kOutputs}, mlx_dtype(dtype));
      const LoraRows rows(random_slots(random, 19, 3));
      const auto with = [&](KernelPath path, std::vector<const LoraMatrices*> layers) {
        LinearOptions options;
        options.path = path;
        options.norm = NormSpec{mx::ones({kInputs}), 1e-5f};
        options.lora = LoraOptions{rows, std::move(layers)};
        return options;
      };
      compare_paths(
          [&](KernelPath path) {
            const std::vector<Projection> joined = {layer, layer, layer};
            return joined_linear(x, joined, with(path, {&lora, nullptr, &lora}));
          },
          mlx_dtype(dtype));
      compare_paths(
          [&](KernelPath path) {
            return gated_linear(x, layer, layer, Activation::kSilu, with(path, {nullptr, &lora}));
          },
          mlx_dtype(dtype));
      compare_paths(
          [&](KernelPath path) {
            LinearOptions options = with(path, {&lora});
            options.bias = layer.bias;
            options.residual = residual;
            options.scale = 0.5f;
            return linear(x, weight, options);
          },
          mlx_dtype(dtype));
    }
  }
}

// Nothing of the adapters runs for a step, or a projection, without any.
TEST(Lora, CallsWithoutAnEffectAreOrdinaryCalls) {
  std::mt19937 random(5);
  const Weight weight = random_dense(random, 37, 70, DType::kFloat32);
  const LoraMatrices lora = random_lora(random, {4, 0}, 70, 37, DType::kFloat32);
  const mx::array x = random_array(random, {3, 70});
  const auto plain = floats_of(linear(x, weight));
  const int64_t before = launch_counts()["lora.cpu"];
  for (const std::vector<int32_t>& slots :
       {std::vector<int32_t>{kNoLora, kNoLora, kNoLora}, std::vector<int32_t>{1, kNoLora, 1}}) {
    LinearOptions options;
    options.lora = LoraOptions{LoraRows(slots), {&lora}};
    EXPECT_TRUE(same_bits(floats_of(linear(x, weight, options)), plain));
  }
  LinearOptions options;
  options.lora = LoraOptions{LoraRows(std::vector<int32_t>{0, 0, 0}), {nullptr}};
  EXPECT_TRUE(same_bits(floats_of(linear(x, weight, options)), plain));
  EXPECT_EQ(launch_counts()["lora.cpu"], before);
}

}  // namespace
}  // namespace octavo

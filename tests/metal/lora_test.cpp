#include "kernels/testing/lora.h"

#include "kernels/linear.h"
#include "metal/linear_support.h"

namespace octavo::metal_linear {
namespace {

constexpr int kInputs = 128, kOutputs = 40;
const std::vector<int> kRanks = {16, 5, 0, 24};

struct LoraCase {
  std::vector<Projection> layers;
  std::vector<LoraMatrices> lora;
};

LoraCase random_case(std::mt19937& random, bool is_quantised, DType dtype) {
  LoraCase made;
  for (int i = 0; i < 3; ++i) {
    made.layers.push_back({is_quantised
                               ? random_affine(random, kOutputs, kInputs, 4, 64, DType::kFloat32)
                               : random_dense(random, kOutputs, kInputs, dtype),
                           random_array(random, {kOutputs})});
    made.lora.push_back(random_lora(random, kRanks, kInputs, kOutputs, dtype));
  }
  return made;
}

enum class Form { kJoined, kGated, kPlain };

mx::array run(const LoraCase& made, Form form, const mx::array& x,
              const std::vector<int32_t>& slots, KernelPath path = KernelPath::kNative) {
  LinearOptions options;
  options.path = path;
  options.norm = NormSpec{.weight = mx::ones({kInputs}, x.dtype()), .eps = 1e-5f};
  const LoraRows rows(slots);
  if (form == Form::kJoined) {
    options.lora = LoraOptions{rows, {&made.lora[0], nullptr, &made.lora[2]}};
    return joined_linear(x, made.layers, options);
  }
  if (form == Form::kGated) {
    options.lora = LoraOptions{rows, {&made.lora[0], &made.lora[1]}};
    return gated_linear(x, made.layers[0], made.layers[1], Activation::kSilu, options);
  }
  options.lora = LoraOptions{rows, {&made.lora[0]}};
  options.bias = made.layers[0].bias;
  options.scale = 0.5f;
  return linear(x, made.layers[0].weight, options);
}

TEST(MetalLora, EveryFormAgrees) {
  std::mt19937 random(61);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool is_quantised : {false, true}) {
      const LoraCase made = random_case(random, is_quantised, dtype);
      for (const int rows : {3, 21}) {
        const mx::array x = random_array(random, {rows, kInputs}, mlx_dtype(dtype));
        auto slots = random_slots(random, rows, static_cast<int>(kRanks.size()));
        slots[0] = 3;
        for (const Form form : {Form::kJoined, Form::kGated, Form::kPlain}) {
          SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << is_quantised << " " << rows
                                          << " form " << static_cast<int>(form));
          const mx::array expected = launching(
              "lora.reference", [&] { return run(made, form, x, slots, KernelPath::kReference); });
          const uint64_t expands = form == Form::kPlain ? 1 : 2;
          const mx::array actual =
              on_metal({{"lora_expand", expands}}, [&] { return run(made, form, x, slots); });
          expect_close(expected, actual, 2 * tolerance_of(dtype));
        }
      }
    }
  }
}

// Rows alone; then all of them, in two orders.
TEST(MetalLora, RowsHaveTheSameBitsAloneAndMixed) {
  std::mt19937 random(62);
  constexpr int kRows = 19;
  for (const bool is_quantised : {false, true}) {
    const LoraCase made = random_case(random, is_quantised, DType::kBFloat16);
    const mx::array x = random_array(random, {kRows, kInputs}, mx::bfloat16);
    auto slots = random_slots(random, kRows, static_cast<int>(kRanks.size()));
    std::fill(slots.begin() + 2, slots.begin() + 12, 0);  // more rows than a small tile
    for (const Form form : {Form::kJoined, Form::kGated}) {
      const SimulatedMetal metal;
      const auto plain = floats_of(run(made, form, x, std::vector<int32_t>(kRows, kNoLora)));
      const auto mixed = floats_of(run(made, form, x, slots));
      const size_t width = mixed.size() / kRows;
      const mx::array reversed =
          mx::contiguous(mx::take(x, mx::arange(kRows - 1, -1, -1, mx::int32), 0));
      const auto backwards = floats_of(run(made, form, reversed, {slots.rbegin(), slots.rend()}));
      const auto row_of = [&](const std::vector<float>& all, size_t row) {
        const auto at = all.begin() + static_cast<std::ptrdiff_t>(row * width);
        return std::vector<float>(at, at + static_cast<std::ptrdiff_t>(width));
      };
      for (size_t row = 0; row < kRows; ++row) {
        const auto index = static_cast<int>(row);
        const auto alone = floats_of(run(made, form, rows_of(x, index, index + 1), {slots[row]}));
        EXPECT_TRUE(same_bits(row_of(mixed, row), alone)) << row;
        EXPECT_TRUE(same_bits(row_of(backwards, kRows - 1 - row), alone)) << row;
        const bool changes = slots[row] != kNoLora && kRanks[static_cast<size_t>(slots[row])] > 0;
        EXPECT_EQ(same_bits(row_of(plain, row), alone), !changes) << row;
      }
    }
  }
}

}  // namespace
}  // namespace octavo::metal_linear

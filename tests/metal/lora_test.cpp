#include "metal/lora_cases.h"

namespace octavo::metal_linear {
namespace {

constexpr int kInputs = 128, kOutputs = 40;

TEST(MetalLora, EveryFormAgrees) {
  std::mt19937 random(61);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool is_quantised : {false, true}) {
      const LoraCase made = random_lora_case(random, dtype, is_quantised, kOutputs, kInputs);
      for (const int rows : {3, 21}) {
        const mx::array x = random_array(random, {rows, kInputs}, mlx_dtype(dtype));
        auto slots = random_slots(random, rows, static_cast<int>(kLoraRanks.size()));
        slots[0] = 3;
        for (const LoraForm form :
             {LoraForm::kJoined, LoraForm::kGated, LoraForm::kPlain, LoraForm::kHead}) {
          SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << is_quantised << " " << rows
                                          << " form " << static_cast<int>(form));
          const mx::array expected = launching(
              "lora.reference", [&] { return run(made, form, x, slots, KernelPath::kReference); });
          const mx::array of_cpu = launching("lora.cpu", [&] { return run(made, form, x, slots); });
          const uint64_t expands = form == LoraForm::kJoined || form == LoraForm::kGated ? 2 : 1;
          const mx::array actual =
              on_metal({{"lora_expand", expands}}, [&] { return run(made, form, x, slots); });
          expect_close(expected, of_cpu, 2 * tolerance_of(dtype));
          expect_close(expected, actual, 2 * tolerance_of(dtype));
        }
      }
    }
  }
}

std::vector<float> row_of(const std::vector<float>& all, int rows, int row) {
  const auto width = std::ssize(all) / rows;
  return {all.begin() + row * width, all.begin() + (row + 1) * width};
}

// Every row alone; all of them; all of them backwards; none with an adapter.
void expect_same_bits_alone_and_mixed(const LoraCase& made, LoraForm form, const mx::array& x,
                                      const std::vector<int32_t>& slots) {
  const SimulatedMetal metal;
  const int rows = x.shape(0);
  const auto plain = floats_of(run(made, form, x, std::vector<int32_t>(slots.size(), kNoLora)));
  auto counts = metal.counts();
  EXPECT_EQ(counts["lora_expand"].launches, 0);
  const auto mixed = floats_of(run(made, form, x, slots));
  const mx::array reversed =
      mx::contiguous(mx::take(x, mx::arange(rows - 1, -1, -1, mx::int32), 0));
  const auto backwards = floats_of(run(made, form, reversed, {slots.rbegin(), slots.rend()}));
  for (int row = 0; row < rows; ++row) {
    const int32_t slot = slots[static_cast<size_t>(row)];
    const auto alone = floats_of(run(made, form, rows_of(x, row, row + 1), {slot}));
    EXPECT_TRUE(same_bits(row_of(mixed, rows, row), alone)) << row;
    EXPECT_TRUE(same_bits(row_of(backwards, rows, rows - 1 - row), alone)) << row;
    const bool changes = slot != kNoLora && kLoraRanks[static_cast<size_t>(slot)] > 0;
    EXPECT_EQ(same_bits(row_of(plain, rows, row), alone), !changes) << row;
  }
}

TEST(MetalLora, RowsHaveTheSameBitsAloneAndMixed) {
  std::mt19937 random(62);
  constexpr int kBase = kNoLora;
  // More rows of slot 0 than a small tile has.
  const std::vector<int32_t> slots = {kBase, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 1, kBase, 4, 3};
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool is_quantised : {false, true}) {
      const LoraCase made = random_lora_case(random, dtype, is_quantised, kOutputs, kInputs);
      const mx::array x =
          random_array(random, {static_cast<int>(slots.size()), kInputs}, mlx_dtype(dtype));
      for (const LoraForm form : {LoraForm::kJoined, LoraForm::kGated}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << is_quantised << " form "
                                        << static_cast<int>(form));
        expect_same_bits_alone_and_mixed(made, form, x, slots);
      }
    }
  }
}

// Prefill in tiles of 64 x 64, with an adapter in the middle.
TEST(MetalLora, LongRunsHaveTheBitsOfFewerRows) {
  std::mt19937 random(63);
  constexpr int kRows = 261, kFew = 120, kShort = 64;
  const LoraCase made = random_lora_case(random, DType::kBFloat16, false, 520, kShort);
  const mx::array x = random_array(random, {kRows, kShort}, mx::bfloat16);
  std::vector<int32_t> slots(kRows, 3);
  std::fill(slots.begin() + 50, slots.begin() + 131, 1);
  slots[60] = slots.back() = kNoLora;
  const auto rows = [&](int begin, int end) {
    return run(made, LoraForm::kGated, rows_of(x, begin, end),
               {slots.begin() + begin, slots.begin() + end});
  };
  const auto all = floats_of(
      on_metal({{"dense_matrix", 1}, {"lora_expand", 2}}, [&] { return rows(0, kRows); }));
  std::vector<float> parts;
  for (const auto& [begin, end] : {std::pair(0, kFew), std::pair(kFew, kRows)}) {
    const auto part = floats_of(on_metal({{"dense_matrix", 0}, {"lora_expand", 2}},
                                         [&, b = begin, e = end] { return rows(b, e); }));
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(same_bits(all, parts));
}

}  // namespace
}  // namespace octavo::metal_linear

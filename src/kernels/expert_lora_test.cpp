#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/cpu/expert_lora.h"
#include "kernels/expert_mlp.h"
#include "kernels/linear.h"
#include "kernels/testing/experts.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/lora.h"

namespace octavo {
namespace {

using testing::ElementsAre;

constexpr int kExperts = 5;
constexpr int kSlots = 3;

// The adapters of odd_experts(): every slot has a rank of its own, and some experts have none.
struct RandomExpertLora {
  LoraMatrices gate, up, down;

  RandomExpertLora(std::mt19937& random, int inner, int hidden, DType dtype)
      : gate(make(random, hidden, inner, dtype)),
        up(make(random, hidden, inner, dtype)),
        down(make(random, inner, hidden, dtype)) {}

  static LoraMatrices make(std::mt19937& random, int inputs, int outputs, DType dtype) {
    std::vector<int> ranks;
    for (int i = 0; i < kSlots * kExperts; ++i)
      ranks.push_back(i % 4 == 3 ? 0 : 3 + 7 * (i / kExperts));
    return random_lora(random, ranks, inputs, outputs, dtype);
  }
  ExpertLora of(const std::vector<int32_t>& slots) const {
    return {LoraRows(slots), &gate, &up, &down};
  }
};

TEST(ExpertLora, EqualsTheReferenceForEveryTypeAndActivation) {
  std::mt19937 random(41);
  for (auto [dtype, tolerance] :
       {std::pair(DType::kFloat32, 1e-5f), {DType::kFloat16, 4e-3f}, {DType::kBFloat16, 3e-2f}}) {
    for (const Activation activation : {Activation::kSilu, Activation::kBoundedSilu}) {
      const ExpertMlp mlp = odd_experts(random, kExperts, dtype, activation, true);
      const RandomExpertLora lora(random, 41, 75, dtype);
      const mx::array x = random_array(random, {37, 75}, mlx_dtype(dtype));
      const Routing routing = random_routing(random, 37, 2, kExperts);
      ExpertOptions options;
      options.residual = random_array(random, {37, 75}, mlx_dtype(dtype));
      const mx::array plain = expert_mlp(x, routing, mlp, options);
      options.lora = lora.of(random_slots(random, 37, kSlots));
      const mx::array actual =
          launching("expert_lora.cpu", [&] { return expert_mlp(x, routing, mlp, options); });
      EXPECT_GT(largest_difference(actual, plain), 0.1f);
      options.path = KernelPath::kReference;
      expect_close(expert_mlp(x, routing, mlp, options), actual, tolerance);
    }
  }
}

TEST(ExpertLora, OneExpertHasTheBitsOfTheLinearKernels) {
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(42);
    for (const RandomExperts& experts :
         experts_of_every_format(random, {kExperts, 256, 256}, false)) {
      SCOPED_TRACE(experts.gate[0].describe());
      const RandomExpertLora lora(random, 256, 256, DType::kBFloat16);
      const mx::array x = random_array(random, {3, 256}, mx::bfloat16);
      const std::vector<int32_t> slots = {2, kNoLora, 0};
      for (const int e : {0, 4}) {
        const Routing routing{mx::full({3, 1}, e, mx::int32), mx::ones({3, 1})};
        ExpertOptions options;
        options.lora = lora.of(slots);
        std::vector<int32_t> own = slots;
        for (int32_t& slot : own)
          if (slot != kNoLora) slot = slot * kExperts + e;
        const auto i = static_cast<size_t>(e);
        LinearOptions first, second;
        first.lora = LoraOptions{LoraRows(own), {&lora.gate, &lora.up}};
        second.lora = LoraOptions{LoraRows(own), {&lora.down}};
        const mx::array inner =
            gated_linear(x, {experts.gate[i], std::nullopt}, {experts.up[i], std::nullopt},
                         Activation::kSilu, first);
        EXPECT_TRUE(same_bits(floats_of(linear(inner, experts.down[i], second)),
                              floats_of(expert_mlp(x, routing, experts.mlp, options))));
      }
    }
  }
}

std::vector<std::byte> bytes_of_row(const mx::array& y, int row) {
  const size_t bytes = y.nbytes() / static_cast<size_t>(y.shape(0));
  const auto* from = y.data<std::byte>() + static_cast<size_t>(row) * bytes;
  return {from, from + bytes};
}

class ExpertLoraBatches : public IsaTest {};

TEST_P(ExpertLoraBatches, TokensHaveTheSameBitsAloneAndInEveryOrder) {
  constexpr int kTokens = 40;
  std::mt19937 random(43);
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    const ExpertMlp mlp = odd_experts(random, kExperts, dtype, Activation::kSilu, true);
    const RandomExpertLora lora(random, 41, 75, dtype);
    const mx::array x = random_array(random, {kTokens, 75}, mlx_dtype(dtype));
    const Routing routing = random_routing(random, kTokens, 2, kExperts);
    const auto slots = random_slots(random, kTokens, kSlots);
    // The tokens of `order`, with adapters or without.
    const auto run = [&](const std::vector<int>& order, bool adapted) {
      const mx::array chosen(order.begin(), {static_cast<int>(order.size())});
      const auto taken = [&](const mx::array& from) {
        return mx::contiguous(mx::take(from, chosen, 0));
      };
      std::vector<int32_t> own;
      for (const int token : order) own.push_back(slots[static_cast<size_t>(token)]);
      ExpertOptions options;
      if (adapted) options.lora = lora.of(own);
      mx::array out =
          expert_mlp(taken(x), {taken(routing.ids), taken(routing.weights)}, mlp, options);
      out.eval();
      return out;
    };
    std::vector<int> order(kTokens);
    std::iota(order.begin(), order.end(), 0);
    const mx::array plain = run(order, false);
    std::vector<std::vector<std::byte>> alone;
    for (int token = 0; token < kTokens; ++token)
      alone.push_back(bytes_of_row(run({token}, true), 0));
    for (const size_t count : {40, 3, 17, 33}) {
      const std::vector<int> some(order.begin(), order.begin() + static_cast<ptrdiff_t>(count));
      const mx::array mixed = run(some, true);
      for (size_t i = 0; i < count; ++i) {
        const int token = some[i];
        ASSERT_EQ(bytes_of_row(mixed, static_cast<int>(i)), alone[static_cast<size_t>(token)]);
        if (slots[static_cast<size_t>(token)] == kNoLora) {
          ASSERT_EQ(bytes_of_row(mixed, static_cast<int>(i)), bytes_of_row(plain, token));
        }
      }
      std::ranges::shuffle(order, random);
    }
  }
}

OCTAVO_FOR_EVERY_ISA(ExpertLoraBatches);

TEST(ExpertLora, RowsAreGroupedBySlotAndExpert) {
  const std::vector<int32_t> ids = {0, 2, 2, 4, 0, 2};
  const std::vector<float> weights(ids.size(), 0.5f);
  const cpu::ExpertRows rows = cpu::gather_by_expert(ids, weights, 2, kExperts);
  const auto plan =
      cpu::plan_expert_lora(make_lora_plan(std::vector<int32_t>{1, kNoLora, 0}), rows, kExperts);
  ASSERT_EQ(plan->rows(), 48);  // three experts, each from a whole block of rows on
  std::vector<int32_t> slots;
  for (const LoraGroup& group : plan->groups) slots.push_back(group.slot);
  EXPECT_THAT(slots, ElementsAre(0, 2, kExperts, kExperts + 2));
}

TEST(ExpertLora, EmptySlotsLaunchNothing) {
  std::mt19937 random(44);
  const ExpertMlp mlp = odd_experts(random, kExperts, DType::kFloat32, Activation::kSilu, false);
  const LoraMatrices first =
      random_lora(random, std::vector<int>(kSlots * kExperts, 0), 75, 41, DType::kFloat32);
  const LoraMatrices last =
      random_lora(random, std::vector<int>(kSlots * kExperts, 0), 41, 75, DType::kFloat32);
  const ExpertLora lora{LoraRows(std::vector<int32_t>{0, 2}), &first, &first, &last};
  EXPECT_FALSE(lora.has_effect(kExperts));
}

}  // namespace
}  // namespace octavo

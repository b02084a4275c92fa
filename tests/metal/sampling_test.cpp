#include "kernels/sampling.h"

#include <chrono>
#include <limits>
#include <thread>

#include "kernels/runtime/kernel_path.h"
#include "kernels/testing/random_logits.h"
#include "kernels/testing/random_rules.h"
#include "kernels/testing/support.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Rows {
  int vocab = 0;
  std::vector<float> logits = {};
  std::vector<RowSampling> sampling = {};

  void add(const std::vector<float>& row, const RowSampling& how) {
    logits.insert(logits.end(), row.begin(), row.end());
    sampling.push_back(how);
  }
  int count() const { return static_cast<int>(sampling.size()); }
  mx::array all() const { return mx::array(logits.begin(), {count(), vocab}, mx::float32); }
  mx::array only(int row) const {
    return mx::array(logits.begin() + int64_t{row} * vocab, {1, vocab}, mx::float32);
  }
};

std::vector<int32_t> drawn(const Rows& rows) {
  return ints_of(sample(rows.all(), rows.sampling).tokens);
}

// Tokens sampled by the CPU and by Metal.
struct BothDrawn {
  std::vector<int32_t> cpu, metal;

  int differing() const {
    int count = 0;
    for (size_t i = 0; i < cpu.size(); ++i) count += cpu[i] != metal[i] ? 1 : 0;
    return count;
  }
};

BothDrawn draw_both(const Rows& rows, metal_sim::MachineOptions options = {}) {
  BothDrawn both;
  both.cpu = launching("sample.cpu", [&] { return drawn(rows); });
  SimulatedMetal metal(options);
  auto before = launch_counts();
  both.metal = drawn(rows);
  EXPECT_EQ(metal.counts()["sample_rows"].launches, 1u);
  EXPECT_EQ(launch_counts()["sample.cpu"], before["sample.cpu"]);
  return both;
}

TEST(MetalSampling, GreedyTokensEqualTheCpu) {
  std::mt19937 random(1);
  for (const int vocab : {1, 255, 256, 3000}) {
    Rows rows{.vocab = vocab};
    for (int shape = 0; shape < kLogitShapes; ++shape)
      rows.add(random_logits(random, static_cast<size_t>(vocab), static_cast<LogitShape>(shape)),
               {});
    std::vector<float> none(static_cast<size_t>(vocab), NAN);
    rows.add(none, {});
    none.back() = -kInfinity;
    rows.add(none, {});
    none.back() = kInfinity;
    rows.add(none, {});
    const BothDrawn both = draw_both(rows);
    EXPECT_EQ(both.cpu, both.metal) << vocab;
  }
}

TEST(MetalSampling, DrawsEqualTheCpu) {
  std::mt19937 random(2);
  int differing = 0, draws = 0;
  for (const int vocab : {40, 700}) {
    Rows rows{.vocab = vocab};
    for (int i = 0; i < 150; ++i) {
      rows.add(random_logits(random, static_cast<size_t>(vocab), random_shape(random)),
               random_sampling(random, static_cast<size_t>(vocab)));
    }
    differing += draw_both(rows, {.finds_races = false}).differing();
    draws += rows.count();
  }
  EXPECT_LE(differing * 1000, draws) << draws;
}

// A realistic vocabulary, with several blocks per simdgroup.
TEST(MetalSampling, DrawsFromManyTokensEqualTheCpu) {
  std::mt19937 random(3);
  Rows rows{.vocab = 9000};
  for (const LogitShape shape : {LogitShape::kFlat, LogitShape::kPeaked, LogitShape::kEqual}) {
    const auto logits = random_logits(random, 9000, shape);
    rows.add(logits, {.temperature = 1, .seed = 5, .position = 8});
    rows.add(logits, {.temperature = 0.7f, .top_p = 0.95f, .seed = 6, .position = 9});
    rows.add(logits, {.temperature = 0.7f, .top_p = 0.9f, .top_k = 20, .seed = 7});
    rows.add(logits, {.temperature = 1, .min_p = 0.05f, .top_k = 5000, .seed = 8});
  }
  for (const auto order : {metal_sim::ThreadOrder::kBackward, metal_sim::ThreadOrder::kShuffled}) {
    const BothDrawn both = draw_both(rows, {.order = order});
    EXPECT_EQ(both.cpu, both.metal);
  }
}

// Degenerate rows: all NaN, infinities, extreme temperatures.
TEST(MetalSampling, DegenerateRowsEqualTheCpu) {
  Rows rows{.vocab = 300};
  std::vector<float> row(300, -kInfinity);
  const RowSampling drawn_row{.temperature = 1, .top_p = 0.5f, .top_k = 7, .seed = 3};
  rows.add(row, drawn_row);
  row[200] = NAN;
  row[299] = -3;
  rows.add(row, drawn_row);
  row[17] = kInfinity;
  rows.add(row, drawn_row);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 50) * 0.1f - 2.5f;
  rows.add(row, {.temperature = 1e-30f, .seed = 4});
  rows.add(row, {.temperature = 1e30f, .top_p = 0.5f, .top_k = 60, .seed = 4});
  rows.add(row, {.temperature = 1, .top_p = 0, .seed = 4});
  rows.add(row, {.temperature = 1, .top_k = 1, .seed = 4});
  rows.add(row, {.temperature = 1, .min_p = 1, .seed = 4});
  row[0] = -0.0f;
  row[5] = 0.0f;
  rows.add(row, {.temperature = 1, .top_k = 147, .seed = 9});
  // Both cuts fall among equal logits: 99 of the first 100 are kept.
  const std::vector<float> equal(300, 0.25f);
  for (uint32_t i = 0; i < 8; ++i)
    rows.add(equal, {.temperature = 1, .top_p = 0.985f, .top_k = 100, .seed = 10, .position = i});
  const BothDrawn both = draw_both(rows);
  EXPECT_EQ(both.cpu, both.metal);
}

TEST(MetalSampling, ATokenDoesNotDependOnOtherRows) {
  std::mt19937 random(4);
  Rows rows{.vocab = 600};
  for (int i = 0; i < 6; ++i)
    rows.add(random_logits(random, 600, random_shape(random)),
             i == 0 ? RowSampling{} : random_sampling(random, 600));
  const SimulatedMetal metal;
  const auto together = drawn(rows);
  for (int i = 0; i < rows.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(ints_of(sample(rows.only(i), {rows.sampling[at]}).tokens)[0], together[at]);
  }
}

// A row with random rules, a history that may be pending or assumed, and perhaps a mask.
RowSampling random_ruled(std::mt19937& random, size_t vocab, int previous) {
  RowSampling row = random() % 2 == 0 ? RowSampling{} : random_sampling(random, vocab);
  row.rules = std::make_shared<LogitRules>(random_rules(random, vocab));
  row.history = history_of(random_tokens(random, random() % 30, vocab),
                           random_tokens(random, random() % 40, vocab));
  if (random() % 3 == 0)
    row.history.pending = static_cast<int32_t>(random() % static_cast<uint32_t>(previous));
  if (row.history.pending < 0 && random() % 2 == 0) {
    row.history.assumed =
        std::make_shared<const std::vector<TokenId>>(random_tokens(random, 5, vocab));
    row.history.assumed_count = static_cast<int32_t>(random() % 5);
  }
  if (random() % 3 == 0) {
    const auto mask = std::make_shared<TokenMask>();
    std::vector<uint32_t> words((vocab + 31) / 32);
    for (size_t token = 0; token < vocab; ++token)
      words[token / 32] |= static_cast<uint32_t>(random() % 8 == 0) << token % 32;
    mask->set(std::move(words));
    row.mask = mask;
  }
  return row;
}

TEST(MetalSampling, RulesAndMasksEqualTheCpu) {
  std::mt19937 random(5);
  int differing = 0, draws = 0;
  for (const int vocab : {3, 70, 4500}) {
    Rows rows{.vocab = vocab};
    const auto size = static_cast<size_t>(vocab);
    const std::vector<TokenId> tokens = random_tokens(random, 6, size);
    const mx::array previous(tokens.begin(), {6}, mx::int32);
    for (int i = 0; i < (vocab > 1000 ? 12 : 100); ++i) {
      const bool has_rules = i % 4 != 0;
      rows.add(random_logits(random, size, random_shape(random)),
               has_rules ? random_ruled(random, size, 6) : random_sampling(random, size));
    }
    const auto made = [&] { return ints_of(sample(rows.all(), rows.sampling, previous).tokens); };
    BothDrawn both{.cpu = launching("sample.cpu", made), .metal = {}};
    SimulatedMetal metal;
    auto before = launch_counts();
    both.metal = made();
    EXPECT_EQ(metal.counts()["rule_logits"].launches, 1u);
    EXPECT_EQ(launch_counts()["sample.cpu"], before["sample.cpu"]);
    EXPECT_EQ(launch_counts()["mask_words.cpu"], before["mask_words.cpu"]) << "masks are known";
    differing += both.differing();
    draws += rows.count();
  }
  EXPECT_LE(differing * 1000, draws) << draws;
}

// The original logits decide, within the mask; see cpu/sampling.cpp.
TEST(MetalSampling, IfEveryTokenIsBannedTheMaskDecides) {
  Rows rows{.vocab = 100};
  std::vector<float> logits(100, 0.5f);
  logits[70] = 3;
  logits[40] = 2;
  const auto mask = std::make_shared<TokenMask>();
  mask->set({0, 1u << 8 | 1u << 3});  // 40 and 35
  RowSampling row{.temperature = 1, .seed = 3};
  row.rules = std::make_shared<LogitRules>(LogitRules{.allowed = {1u << 9}});
  row.mask = mask;
  rows.add(logits, row);
  logits[40] = logits[35] = -kInfinity;
  rows.add(logits, row);
  row.mask = nullptr;
  row.rules = std::make_shared<LogitRules>(LogitRules{.allowed = {0, 0, 0, 0}});
  rows.add(logits, row);
  const BothDrawn both = draw_both(rows);
  EXPECT_EQ(both.cpu, (std::vector<int32_t>{40, 35, 70}));
  EXPECT_EQ(both.metal, both.cpu);
}

TEST(MetalSampling, TheDrawWaitsForItsMask) {
  SimulatedMetal metal;
  const auto mask = std::make_shared<TokenMask>();
  Drawn drawn = sample(mx::array({1.0f, 2.0f, 3.0f}, {1, 3}), {{.mask = mask}});
  mx::async_eval(drawn.tokens);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(drawn.tokens.is_available());
  mask->set({0b010});
  EXPECT_EQ(ints_of(drawn.tokens), std::vector<int32_t>{1});
}

TEST(MetalSampling, TokensInFlightArePlaced) {
  SimulatedMetal metal;
  const mx::array placed =
      place_tokens(mx::array({7, 8, 9}), mx::array({-1, 1, 0}), mx::array({100, 200}));
  EXPECT_EQ(ints_of(placed), (std::vector<int32_t>{7, 200, 100}));
  EXPECT_EQ(metal.counts()["place_tokens"].launches, 1u);
}

// Greedy sampling costs one pass over the row and one block.
TEST(MetalSampling, GreedySamplingReadsTheRowOnce) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts reads";
  std::mt19937 random(6);
  Rows rows{.vocab = 5000};
  rows.add(random_logits(random, 5000, LogitShape::kFlat), {});
  SimulatedMetal metal;
  drawn(rows);
  EXPECT_EQ(metal.counts()["logit_maxima"].arguments["logits"].load_bytes, 4u * 5000);
  EXPECT_LE(metal.counts()["sample_rows"].arguments["logits"].load_bytes, 4u * 256);
}

}  // namespace
}  // namespace octavo

#include "kernels/logprobs.h"

#include "kernels/metal/logprobs_params.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/sampling.h"
#include "metal/logprob_requests.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

TEST(MetalLogprobs, BitsEqualTheCpu) {
  std::mt19937 random(1);
  for (const int vocab : {1, 2, 255, 256, 700, 4500}) {
    const int most = std::min(vocab, metal::kMostTopTokens);
    const LogprobRequests requests = random_logprob_requests(random, vocab, most);
    const LogprobBits expected =
        launching("logprobs_of.cpu", [&] { return LogprobBits(requests.made()); });
    SimulatedMetal metal;
    auto before = launch_counts();
    EXPECT_EQ(LogprobBits(requests.made()), expected) << vocab;
    for (const char* kernel : {"best_tokens", "weight_sums", "top_tokens"})
      EXPECT_EQ(metal.counts()[kernel].launches, 1u) << kernel;
    EXPECT_EQ(launch_counts()["logprobs_of.cpu"], before["logprobs_of.cpu"]);
  }
}

TEST(MetalLogprobs, OfManyBlocks) {
  std::mt19937 random(2);
  LogprobRequests requests{.vocab = 151936};
  requests.add(random_logits(random, 151936, LogitShape::kPeaked), 7, 20);
  // More than one block per thread, and the largest in the last one.
  LogprobRequests wide{.vocab = 300000};
  wide.add(random_logits(random, 300000, LogitShape::kTied), 299999, 5);
  wide.logits.back() = 40;
  for (const LogprobRequests* all : {&requests, &wide}) {
    const LogprobBits expected(all->made());
    SimulatedMetal metal;
    EXPECT_EQ(LogprobBits(all->made()), expected);
    EXPECT_EQ(metal.counts()["top_tokens"].launches, 1u);
  }
}

TEST(MetalLogprobs, WithoutTopTokensNoneAreSearched) {
  std::mt19937 random(3);
  LogprobRequests requests{.vocab = 600};
  for (const int count : {0, -1, 0})
    requests.add(random_logits(random, 600, LogitShape::kFlat), 5, count);
  const LogprobBits expected(requests.made());
  SimulatedMetal metal;
  EXPECT_EQ(LogprobBits(requests.made()), expected);
  EXPECT_EQ(metal.counts()["weight_sums"].launches, 1u);
  EXPECT_EQ(metal.counts().count("top_tokens"), 0u);
}

TEST(MetalLogprobs, MoreTopTokensAreFoundByTheCpu) {
  std::mt19937 random(4);
  LogprobRequests requests{.vocab = 600};
  requests.add(random_logits(random, 600, LogitShape::kFlat), 5, metal::kMostTopTokens + 1);
  const LogprobBits expected(requests.made());
  SimulatedMetal metal;
  EXPECT_EQ(launching("logprobs_of.cpu", [&] { return LogprobBits(requests.made()); }), expected);
  EXPECT_TRUE(metal.counts().empty());
}

// The device draws the tokens of these rows, and the tokens do not wait for the CPU.
TEST(MetalLogprobs, AndHashesDoNotMoveADrawToTheCpu) {
  std::mt19937 random(5);
  std::vector<float> logits;
  std::vector<RowSampling> plain;
  for (int i = 0; i < 12; ++i) {
    const auto row = random_logits(random, 300, random_shape(random));
    logits.insert(logits.end(), row.begin(), row.end());
    plain.push_back(random_sampling(random, 300));
  }
  const mx::array all(logits.begin(), {12, 300}, mx::float32);
  std::vector<RowSampling> requested = plain;
  for (size_t i : {1u, 4u, 11u}) requested[i].logprobs = static_cast<int>(i) % 3;
  requested[7].hash_logits = requested[11].hash_logits = true;
  SimulatedMetal metal;
  const auto alone = ints_of(sample(all, plain).tokens);
  auto before = launch_counts();
  const Drawn drawn = sample(all, requested);
  EXPECT_EQ(ints_of(drawn.tokens), alone);
  EXPECT_EQ(launch_counts()["sample_rows.metal"], before["sample_rows.metal"] + 1);
  EXPECT_EQ(launch_counts()["sample.cpu"], before["sample.cpu"]);
  EXPECT_EQ(launch_counts()["hash_logits.cpu"], before["hash_logits.cpu"]) << "not needed yet";
  EXPECT_EQ(metal.counts().count("weight_sums"), 0u) << "not needed yet";
  const auto ids = ints_of(drawn.logprobs->ids);
  const auto ranks = ints_of(drawn.logprobs->ranks);
  mx::array hashes = *drawn.hashes;
  hashes.eval();
  for (size_t i = 0; i < alone.size(); ++i) {
    const bool has_logprobs = requested[i].logprobs >= 0;
    EXPECT_EQ(ids[i * 3], has_logprobs ? alone[i] : -1) << i;
    EXPECT_EQ(ranks[i] > 0, has_logprobs) << i;
    EXPECT_EQ(hashes.data<uint64_t>()[i] != 0, requested[i].hash_logits) << i;
  }
}

}  // namespace
}  // namespace octavo

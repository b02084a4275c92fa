#include "kernels/logprobs.h"

#include <limits>

#include "kernels/metal/logprobs_params.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/sampling.h"
#include "kernels/testing/random_logits.h"
#include "kernels/testing/support.h"
#include "metal/faulty_simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Requests {
  int vocab = 0;
  std::vector<float> logits = {};
  std::vector<TokenId> tokens = {};
  std::vector<int> counts = {};

  void add(const std::vector<float>& row, TokenId token, int count) {
    logits.insert(logits.end(), row.begin(), row.end());
    tokens.push_back(token);
    counts.push_back(count);
  }
  int rows() const { return static_cast<int>(tokens.size()); }
  mx::array all() const { return mx::array(logits.begin(), {rows(), vocab}, mx::float32); }
  Logprobs made() const {
    return logprobs_of(all(), mx::array(tokens.begin(), {rows()}, mx::int32), counts);
  }
};

// The bytes of every result.
struct Bits {
  std::vector<float> values;
  std::vector<int32_t> ids, ranks;

  explicit Bits(const Logprobs& of)
      : values(floats_of(of.values)), ids(ints_of(of.ids)), ranks(ints_of(of.ranks)) {}
  bool operator==(const Bits& other) const {
    return same_bits(values, other.values) && ids == other.ids && ranks == other.ranks;
  }
};

Requests random_requests(std::mt19937& random, int vocab, int most) {
  Requests requests{.vocab = vocab};
  const auto size = static_cast<size_t>(vocab);
  const auto add = [&](const std::vector<float>& row) {
    requests.add(row, static_cast<TokenId>(random() % size),
                 static_cast<int>(random() % static_cast<uint32_t>(most + 2)) - 1);
  };
  for (int i = 0; i < 3 * kLogitShapes; ++i)
    add(random_logits(random, size, static_cast<LogitShape>(i % kLogitShapes)));
  std::vector<float> odd(size, NAN);
  add(odd);
  odd[random() % size] = -kInfinity;
  add(odd);
  odd[random() % size] = kInfinity;
  add(odd);
  for (float& logit : odd) logit = random() % 2 == 0 ? -0.0f : 0.0f;
  add(odd);
  requests.counts.back() = most;
  for (float& logit : odd) logit = static_cast<float>(random() % 5) * 1e-39f;  // count as zero
  add(odd);
  return requests;
}

TEST(MetalLogprobs, BitsEqualTheCpu) {
  std::mt19937 random(1);
  for (const int vocab : {1, 2, 255, 256, 700, 4500}) {
    const int most = std::min(vocab, metal::kMostTopTokens);
    const Requests requests = random_requests(random, vocab, most);
    const Bits expected = launching("logprobs_of.cpu", [&] { return Bits(requests.made()); });
    SimulatedMetal metal;
    auto before = launch_counts();
    EXPECT_EQ(Bits(requests.made()), expected) << vocab;
    for (const char* kernel : {"best_tokens", "weight_sums", "top_tokens"})
      EXPECT_EQ(metal.counts()[kernel].launches, 1u) << kernel;
    EXPECT_EQ(launch_counts()["logprobs_of.cpu"], before["logprobs_of.cpu"]);
  }
}

TEST(MetalLogprobs, OfManyBlocks) {
  std::mt19937 random(2);
  Requests requests{.vocab = 151936};
  requests.add(random_logits(random, 151936, LogitShape::kPeaked), 7, 20);
  // More than one block per thread, and the largest in the last one.
  Requests wide{.vocab = 300000};
  wide.add(random_logits(random, 300000, LogitShape::kTied), 299999, 5);
  wide.logits.back() = 40;
  for (const Requests* all : {&requests, &wide}) {
    const Bits expected(all->made());
    SimulatedMetal metal;
    EXPECT_EQ(Bits(all->made()), expected);
    EXPECT_EQ(metal.counts()["top_tokens"].launches, 1u);
  }
}

TEST(MetalLogprobs, WithoutTopTokensNoneAreSearched) {
  std::mt19937 random(3);
  Requests requests{.vocab = 600};
  for (const int count : {0, -1, 0})
    requests.add(random_logits(random, 600, LogitShape::kFlat), 5, count);
  const Bits expected(requests.made());
  SimulatedMetal metal;
  EXPECT_EQ(Bits(requests.made()), expected);
  EXPECT_EQ(metal.counts()["weight_sums"].launches, 1u);
  EXPECT_EQ(metal.counts().count("top_tokens"), 0u);
}

TEST(MetalLogprobs, MoreTopTokensAreFoundByTheCpu) {
  std::mt19937 random(4);
  Requests requests{.vocab = 600};
  requests.add(random_logits(random, 600, LogitShape::kFlat), 5, metal::kMostTopTokens + 1);
  const Bits expected(requests.made());
  SimulatedMetal metal;
  EXPECT_EQ(launching("logprobs_of.cpu", [&] { return Bits(requests.made()); }), expected);
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

TEST(MetalLogprobs, FaultsAreDetected) {
  std::mt19937 random(6);
  Requests requests = random_requests(random, 700, 20);
  requests.counts[0] = -1;  // so that rows of the results differ from those of the logits
  const Bits expected(requests.made());
  const Fault faults[] = {
      {"the best read before it is written", "weight_sums", kBarrier, ""},
      {"rounds that do not wait", "top_tokens", kBarrier, "", 1},
      {"the same token again", "top_tokens", "place < limit", "place <= limit"},
      {"the higher id first", "best_tokens", "ulong(~uint(token))", "ulong(token)"},
      {"another row's logits", "weight_sums", "ulong(own.row)", "ulong(group.y)", 1},
      {"equal logits counted", "weight_sums", "> limit", ">= limit"},
      {"sums of 32 lanes", "weight_sums", "half_width / 2", "half_width"}};
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    FaultySimulator simulator(fault);
    const Bits actual(requests.made());
    EXPECT_TRUE(simulator.was_put_in());
    EXPECT_TRUE(!simulator.found().empty() || !(actual == expected));
  }
}

}  // namespace
}  // namespace octavo

// logprob_requests.h - logits whose log probabilities are asked for, and the results' bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/logprobs.h"
#include "kernels/testing/random_logits.h"
#include "kernels/testing/support.h"

namespace octavo {

struct LogprobRequests {
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
struct LogprobBits {
  std::vector<float> values;
  std::vector<int32_t> ids, ranks;

  explicit LogprobBits(const Logprobs& of)
      : values(floats_of(of.values)), ids(ints_of(of.ids)), ranks(ints_of(of.ranks)) {}
  bool operator==(const LogprobBits& other) const {
    return same_bits(values, other.values) && ids == other.ids && ranks == other.ranks;
  }
};

// Rows of every shape, with odd values and ties, and up to `most` top tokens.
inline LogprobRequests random_logprob_requests(std::mt19937& random, int vocab, int most) {
  LogprobRequests requests{.vocab = vocab};
  const auto size = static_cast<size_t>(vocab);
  const auto add = [&](const std::vector<float>& row) {
    requests.add(row, static_cast<TokenId>(random() % size),
                 static_cast<int>(random() % static_cast<uint32_t>(most + 2)) - 1);
  };
  for (int i = 0; i < 3 * kLogitShapes; ++i)
    add(random_logits(random, size, static_cast<LogitShape>(i % kLogitShapes)));
  std::vector<float> odd(size, NAN);
  add(odd);
  odd[random() % size] = -std::numeric_limits<float>::infinity();
  add(odd);
  odd[random() % size] = std::numeric_limits<float>::infinity();
  add(odd);
  for (float& logit : odd) logit = random() % 2 == 0 ? -0.0f : 0.0f;
  add(odd);
  requests.counts.back() = most;
  for (float& logit : odd) logit = static_cast<float>(random() % 5) * 1e-39f;  // count as zero
  add(odd);
  return requests;
}

}  // namespace octavo

// length_stats.h - length statistics of a set of answers, and comparison of two sets. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// One answer per prompt and choice, in a fixed order.
struct AnswerSet {
  std::vector<std::string> texts = {};
  std::vector<size_t> lengths = {};  // in tokens
};

struct LengthStats {
  size_t answers = 0;
  double mean = 0;
  double deviation = 0;  // sample standard deviation
  size_t least = 0;
  size_t most = 0;
  uint64_t hash = 0;  // of all texts and their boundaries
};

// `set` must not be empty.
LengthStats length_stats(const AnswerSet& set);

// Returns the number of texts that differ. Both sets must have the same size.
size_t different_texts(const AnswerSet& a, const AnswerSet& b);

}  // namespace octavo

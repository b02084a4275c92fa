// length_stats.h - how long a set of answers is, and whether it is the same as another. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// One answer for each prompt and choice, always in the same order.
struct AnswerSet {
  std::vector<std::string> texts = {};
  std::vector<size_t> lengths = {};  // in tokens
};

struct LengthStats {
  size_t answers = 0;
  double mean = 0;
  double deviation = 0;  // of a sample
  size_t least = 0;
  size_t most = 0;
  uint64_t hash = 0;  // of all texts and where they end
};

// Of at least one answer.
LengthStats length_stats(const AnswerSet& set);

// Texts that differ in any byte. Both sets have as many.
size_t different_texts(const AnswerSet& a, const AnswerSet& b);

}  // namespace octavo

// ngram_index.h - finds earlier occurrences of the last tokens of a growing text. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace octavo {

struct NgramLengths {
  int shortest = 2;
  int longest = 4;
};

// Keeps positions only, in tables of fixed size where a collision overwrites the older entry.
// Adding a token and searching take constant time, and memory is bounded.
class NgramIndex {
 public:
  explicit NgramIndex(NgramLengths lengths);

  // Returns up to `most` tokens that followed the latest earlier occurrence of the longest suffix
  // of `text`; none if there is no occurrence. A repetition is assumed to continue. `text` must
  // start with the text of the previous call.
  std::vector<TokenId> continuation(std::span<const TokenId> text, int most);

 private:
  void grow(size_t tokens);
  void index_until(std::span<const TokenId> text, size_t end);
  // Where the last n-gram of `text` ended before, or -1.
  int find(std::span<const TokenId> text, int n) const;
  std::vector<int32_t>& table(int n) { return tables_[static_cast<size_t>(n - lengths_.shortest)]; }
  const std::vector<int32_t>& table(int n) const {
    return tables_[static_cast<size_t>(n - lengths_.shortest)];
  }

  NgramLengths lengths_;
  std::vector<std::vector<int32_t>> tables_;  // by length: slot of a hash -> where it ended last
  size_t indexed_ = 0;                        // n-grams that end at or before this are in
};

}  // namespace octavo

// ngram_index.h - where in a growing text its last tokens stood before. No MLX.
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

// Keeps positions only, in tables of fixed size that forget the older of two that collide: adding a
// token and asking cost the same however long the text is, and memory is bounded.
class NgramIndex {
 public:
  explicit NgramIndex(NgramLengths lengths);

  // What may follow `text`: what followed its last tokens, as many as possible of them, the last
  // time they stood there. At most `most` tokens; none when they did not. A text that repeats
  // itself is taken to go on so. `text` must begin with that of the call before.
  std::vector<TokenId> continuation(std::span<const TokenId> text, int most);

 private:
  void grow(size_t tokens);
  void index_until(std::span<const TokenId> text, size_t end);
  // Where the n-gram that ends `text` ended before, or -1.
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

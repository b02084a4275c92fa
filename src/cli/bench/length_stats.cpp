#include "cli/bench/length_stats.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/xxh64.h"

namespace octavo {

LengthStats length_stats(const AnswerSet& set) {
  OCTAVO_CHECK(!set.lengths.empty() && set.lengths.size() == set.texts.size());
  const auto count = static_cast<double>(set.lengths.size());
  double sum = 0;
  for (const size_t length : set.lengths) sum += static_cast<double>(length);
  const double mean = sum / count;
  double squares = 0;
  for (const size_t length : set.lengths) {
    const double off = static_cast<double>(length) - mean;
    squares += off * off;
  }
  std::string all;
  for (const std::string& text : set.texts) all.append(text).push_back('\0');
  const auto [least, most] = std::ranges::minmax(set.lengths);
  return {.answers = set.lengths.size(),
          .mean = mean,
          .deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0,
          .least = least,
          .most = most,
          .hash = xxh64(std::as_bytes(std::span(all)))};
}

size_t different_texts(const AnswerSet& a, const AnswerSet& b) {
  OCTAVO_CHECK(a.texts.size() == b.texts.size());
  size_t different = 0;
  for (size_t i = 0; i < a.texts.size(); ++i) different += a.texts[i] == b.texts[i] ? 0 : 1;
  return different;
}

}  // namespace octavo

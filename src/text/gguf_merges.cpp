#include "text/gguf_merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "text/utf8.h"

namespace octavo {
namespace {

// Bounds their memory to about 300 MB. Vocabularies of 256k tokens have about a million.
constexpr size_t kMostMerges = 4u << 20;

struct Candidate {
  Merge merge;
  float score;
  size_t left_length, right_length;  // code points
  int left_id, right_id;
};

// All splits of `token` into two tokens, ordered by the parts' ids.
std::vector<Candidate> splits_of(std::string_view token, float score, const TokenIndex& index) {
  std::vector<Candidate> found;
  const size_t length = count_code_points(token);
  size_t left_length = 0;
  for (size_t cut = 1; cut < token.size(); ++cut) {
    if ((static_cast<unsigned char>(token[cut]) & 0xC0) == 0x80) continue;  // inside a character
    ++left_length;
    const auto left = index.find(token.substr(0, cut));
    if (left == index.end()) continue;
    const auto right = index.find(token.substr(cut));
    if (right == index.end()) continue;
    found.push_back({.merge = {left->first, right->first},
                     .score = score,
                     .left_length = left_length,
                     .right_length = length - left_length,
                     .left_id = left->second,
                     .right_id = right->second});
  }
  std::ranges::stable_sort(found, {},
                           [](const Candidate& c) { return std::tuple(c.left_id, c.right_id); });
  return found;
}

}  // namespace

std::vector<Merge> written_merges(std::span<const std::string> lines, const TokenIndex& index) {
  std::vector<Merge> merges;
  merges.reserve(lines.size());
  std::unordered_set<uint64_t> seen;  // ids of both parts
  seen.reserve(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const auto refuse = [&](const char* why) {
      throw SetupError(fmt::format("merge {} of the vocabulary {}", i, why));
    };
    const size_t space = line.find(' ', 1);
    if (line.empty() || space == std::string_view::npos) refuse("is not two tokens");
    const auto left = index.find(line.substr(0, space));
    const auto right = index.find(line.substr(space + 1));
    if (left == index.end() || right == index.end()) refuse("names an unknown token");
    const std::string whole = std::string(left->first) + std::string(right->first);
    if (!index.contains(whole)) refuse("produces an unknown token");
    const auto ids =
        static_cast<uint64_t>(left->second) << 32 | static_cast<uint64_t>(right->second);
    if (seen.insert(ids).second) merges.emplace_back(left->first, right->first);
  }
  return merges;
}

std::vector<Merge> merges_from_scores(std::span<const std::string> tokens,
                                      std::span<const float> scores, const TokenIndex& index) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto found = splits_of(tokens[i], scores[i], index);
    candidates.insert(candidates.end(), found.begin(), found.end());
    if (candidates.size() > kMostMerges)
      throw SetupError(fmt::format("the vocabulary has more than {} merges", kMostMerges));
  }
  std::ranges::stable_sort(candidates, std::ranges::greater{}, [](const Candidate& c) {
    return std::tuple(c.score, c.left_length, c.right_length);
  });
  std::vector<Merge> merges;
  merges.reserve(candidates.size());
  for (const Candidate& candidate : candidates) merges.push_back(candidate.merge);
  return merges;
}

}  // namespace octavo

#include "scheduler/ngram_index.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace octavo {
namespace {

constexpr size_t kFewestSlots = 1024;
constexpr size_t kMostSlots = size_t{1} << 18;

size_t slot_of(std::span<const TokenId> ngram, size_t slots) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (TokenId token : ngram) {
    hash = (hash ^ static_cast<uint64_t>(token)) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return hash & (slots - 1);
}

}  // namespace

NgramIndex::NgramIndex(NgramLengths lengths) : lengths_(lengths) {
  OCTAVO_CHECK(1 <= lengths.shortest && lengths.shortest <= lengths.longest);
  tables_.resize(static_cast<size_t>(lengths.longest - lengths.shortest + 1));
}

void NgramIndex::grow(size_t tokens) {
  const size_t slots = std::clamp(std::bit_ceil(2 * tokens), kFewestSlots, kMostSlots);
  if (slots <= tables_[0].size()) return;
  for (auto& table : tables_) table.assign(slots, -1);
  indexed_ = 0;
}

void NgramIndex::index_until(std::span<const TokenId> text, size_t end) {
  for (size_t at = indexed_ + 1; at <= end; ++at) {
    for (int n = lengths_.shortest; n <= lengths_.longest && static_cast<size_t>(n) <= at; ++n) {
      const auto ngram = text.subspan(at - static_cast<size_t>(n), static_cast<size_t>(n));
      table(n)[slot_of(ngram, table(n).size())] = static_cast<int32_t>(at);
    }
  }
  indexed_ = std::max(indexed_, end);
}

int NgramIndex::find(std::span<const TokenId> text, int n) const {
  const auto size = static_cast<size_t>(n);
  if (text.size() <= size) return -1;
  const auto ngram = text.last(size);
  const int at = table(n)[slot_of(ngram, table(n).size())];
  if (at < 0) return -1;
  const auto before = text.subspan(static_cast<size_t>(at) - size, size);
  return std::ranges::equal(before, ngram) ? at : -1;
}

std::vector<TokenId> NgramIndex::continuation(std::span<const TokenId> text, int most) {
  if (text.empty()) return {};
  grow(text.size());
  // The last n-grams would only find themselves.
  index_until(text, text.size() - 1);
  for (int n = lengths_.longest; n >= lengths_.shortest; --n) {
    const int at = find(text, n);
    if (at < 0) continue;
    std::vector<TokenId> tokens;
    for (size_t i = static_cast<size_t>(at); tokens.size() < static_cast<size_t>(most); ++i)
      tokens.push_back(i < text.size() ? text[i] : tokens[i - text.size()]);
    return tokens;
  }
  return {};
}

}  // namespace octavo

// fake_model.h - a model for scheduler tests: what a row draws or returns depends on all page cells that it
// sees, so that a misused page changes it. No MLX.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/cache_plan.h"
#include "kernels/types/pooling_plan.h"
#include "kernels/types/row_sampling.h"
#include "scheduler/adapter.h"
#include "scheduler/testing/fake_images.h"

namespace octavo {

inline uint64_t fake_mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u ^ (b + 0x7F4A7C15u) * 0xD6E8FEB86659FD93u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ x >> 29;
}

// The page cell of a token: like K and V, it depends on every token before it and on the adapter.
inline uint64_t fake_cell(uint64_t previous_cell, TokenId token, uint64_t adapter = 0) {
  return fake_mix(previous_cell, static_cast<uint64_t>(token) + 1 + (adapter << 32));
}

// What the fake model takes from an adapter: a part of its digest. 0: no adapter.
inline uint64_t fake_effect(const Adapter* adapter) {
  return adapter == nullptr ? 0 : uint64_t{adapter->digest()[0]} + 1;
}

// What an encoder sees in place of a token of the second text.
inline TokenId fake_typed(TokenId token, int type) { return token + (type << 28); }

inline constexpr int kFakeWidth = 3;  // of hidden rows

class FakeModel {
 public:
  FakeModel(const CachePlan& plan, int vocab) : plan_(plan), vocab_(vocab) {}

  const CachePlan& plan() const { return plan_; }

  // The token drawn by a row that sees `cells` (of all tokens up to its own). A window sees only
  // the last cells. `state`: the last cell, as a recurrent layer has it. `history`: the tokens as
  // the rules of the row see them.
  template <typename CellOf>  // uint64_t(int group, int position)
  TokenId draw(int length, const RowSampling& sampling, uint64_t state,
               std::span<const TokenId> history, const CellOf& cell_of) const {
    uint64_t seen = seen_by(length, state, cell_of);
    if (sampling.rules != nullptr && sampling.rules->repetition_penalty != 1) {
      for (TokenId token : history.last(std::min<size_t>(history.size(), 12)))
        seen = fake_mix(seen, static_cast<uint64_t>(token));
    }
    const uint64_t seed = fake_mix(sampling.seed, sampling.choice);
    const uint64_t random = sampling.temperature > 0 ? fake_mix(seed, sampling.position) : 0;
    auto token = static_cast<TokenId>(fake_mix(seen, random) % static_cast<uint64_t>(vocab_));
    if (sampling.mask) {
      const TokenId inside = first_from(token, [&](TokenId t) { return is_allowed(t, sampling); });
      token = first_from(
          inside, [&](TokenId t) { return is_allowed(t, sampling) && !is_held_back(t, sampling); });
      return is_held_back(token, sampling) ? inside : token;
    }
    return first_from(token, [&](TokenId t) { return !is_held_back(t, sampling); });
  }

  // The row at `position` after the final norm, which sees the first `length` tokens: numbers whose sum
  // depends on the order.
  template <typename CellOf>
  std::vector<float> hidden(int position, int length, uint64_t state, const CellOf& cell_of) const {
    const uint64_t seen =
        fake_mix(seen_by(length, state, cell_of), static_cast<uint64_t>(position));
    std::vector<float> row;
    for (uint64_t i = 0; i < kFakeWidth; ++i)
      row.push_back(static_cast<float>(fake_mix(seen, i) % 1000003) / 1000.0F - 500.0F);
    return row;
  }

  // The output of one sequence run alone. `images`: of the prompt.
  TokenId next_token(const std::vector<TokenId>& tokens, const RowSampling& sampling,
                     const Adapter* adapter = nullptr,
                     const std::vector<PromptImage>& images = {}) const {
    const std::vector<uint64_t> cells = cells_of(fake_seen(tokens, images), adapter);
    return draw(static_cast<int>(tokens.size()), sampling, cells.back(), tokens,
                [&](int, int p) { return cells[static_cast<size_t>(p)]; });
  }

  // The same for a pooled text.
  std::vector<float> embedding(const std::vector<TokenId>& tokens, Pooling pooling,
                               const Adapter* adapter = nullptr) const {
    const std::vector<uint64_t> cells = cells_of(tokens, adapter);
    return pool(pooling, static_cast<int>(tokens.size()), [&](int position) {
      return hidden(position, position + 1, cells[static_cast<size_t>(position)],
                    [&](int, int p) { return cells[static_cast<size_t>(p)]; });
    });
  }

  // The same for an encoder, whose rows see the whole text. `second_text`: as in Request.
  std::vector<float> whole_embedding(std::vector<TokenId> tokens, int second_text,
                                     Pooling pooling) const {
    for (size_t i = static_cast<size_t>(second_text); second_text > 0 && i < tokens.size(); ++i)
      tokens[i] = fake_typed(tokens[i], 1);
    const std::vector<uint64_t> cells = cells_of(tokens, nullptr);
    const auto length = static_cast<int>(tokens.size());
    return pool(pooling, length, [&](int position) {
      return hidden(position, length, 0, [&](int, int p) { return cells[static_cast<size_t>(p)]; });
    });
  }

 private:
  template <typename RowAt>  // std::vector<float>(int position)
  static std::vector<float> pool(Pooling pooling, int length, const RowAt& row_at) {
    if (pooling != Pooling::kMean) return row_at(pooling == Pooling::kFirst ? 0 : length - 1);
    std::vector<float> sum = row_at(0);
    for (int position = 1; position < length; ++position) {
      const std::vector<float> next = row_at(position);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
    }
    for (float& value : sum) value /= static_cast<float>(length);
    return sum;
  }

  static std::vector<uint64_t> cells_of(const std::vector<TokenId>& tokens,
                                        const Adapter* adapter) {
    std::vector<uint64_t> cells;
    for (TokenId token : tokens)
      cells.push_back(fake_cell(cells.empty() ? 0 : cells.back(), token, fake_effect(adapter)));
    return cells;
  }

  // Everything the last of `length` rows can see.
  template <typename CellOf>
  uint64_t seen_by(int length, uint64_t state, const CellOf& cell_of) const {
    uint64_t seen = plan_.state ? fake_mix(state, 5) : 0;
    for (int g = 0; g < static_cast<int>(plan_.groups.size()); ++g) {
      const int window = plan_.groups[static_cast<size_t>(g)].spec.window;
      for (int p = window > 0 ? std::max(0, length - window) : 0; p < length; ++p)
        seen = fake_mix(seen, cell_of(g, p));
    }
    return seen;
  }

  // `token` itself if no other is allowed.
  template <typename IsRight>
  TokenId first_from(TokenId token, const IsRight& is_right) const {
    for (int i = 0; i < vocab_; ++i)
      if (is_right((token + i) % vocab_)) return (token + i) % vocab_;
    return token;
  }

  static bool is_allowed(TokenId token, const RowSampling& sampling) {
    const auto words = sampling.mask->wait();
    const auto word = static_cast<size_t>(token) / 32;
    return words.empty() || (word < words.size() && (words[word] >> (token % 32) & 1) != 0);
  }

  static bool is_held_back(TokenId token, const RowSampling& sampling) {
    if (sampling.rules == nullptr) return false;
    const auto answer = static_cast<int>(sampling.position) - sampling.history.prompt;
    return answer < sampling.rules->min_tokens &&
           std::ranges::count(sampling.rules->held_back, token) > 0;
  }

  const CachePlan& plan_;
  int vocab_;
};

}  // namespace octavo

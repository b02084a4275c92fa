// pooling_plan.h - how the token rows of a text become one vector. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

enum class Pooling : uint8_t {
  kNone,
  kLast,   // the last token's row
  kMean,   // the mean of all tokens' rows
  kFirst,  // the first token's row
};

// What joins a query and a document for a model that scores them.
enum class PairPrompt : uint8_t {
  kSpecialTokens,  // as the tokenizer joins two texts
  kQwen3Reranker,  // the prompt that Qwen3-Reranker was trained with
};

struct PoolingPlan {
  Pooling kind = Pooling::kLast;
  bool normalize = true;  // of a model that scores: a sigmoid, or a softmax of several labels
  std::optional<int> dimensions = {};  // of a vector, unless a request gives another number
  // Prefixes of a vector are meaningful (Matryoshka), so requests may choose fewer dimensions.
  bool matryoshka = false;
  std::vector<int> matryoshka_dimensions = {};  // the only ones allowed; empty: any
  std::optional<int> max_tokens = {};           // of a text, if less than the context

  // > 0: the model scores texts, and its ScoreHead has so many outputs.
  int labels = 0;
  PairPrompt pair_prompt = PairPrompt::kSpecialTokens;

  // "the last token, normalised", or for a model that scores "1 label, from the first token".
  std::string describe() const;
};

}  // namespace octavo

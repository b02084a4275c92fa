// pooling_plan.h - how the token rows of a text become one vector. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

enum class Pooling : uint8_t {
  kNone,
  kLast,  // the last token's row
  kMean,  // the mean of all tokens' rows
};

struct PoolingPlan {
  Pooling kind = Pooling::kLast;
  bool normalize = true;
  std::optional<int> dimensions = {};  // of a vector, unless a request gives another number
  // Prefixes of a vector are meaningful (Matryoshka), so requests may choose fewer dimensions.
  bool matryoshka = false;
  std::vector<int> matryoshka_dimensions = {};  // the only ones allowed; empty: any
  std::optional<int> max_tokens = {};           // of a text, if less than the context

  // "last token, normalised"
  std::string describe() const;
};

}  // namespace octavo

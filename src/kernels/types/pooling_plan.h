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
  std::optional<int> dimensions = {};  // kept of a vector, unless a request says otherwise
  // The first numbers of a vector mean something by themselves, so that requests may ask for fewer.
  bool matryoshka = false;
  std::vector<int> matryoshka_dimensions = {};  // the only ones allowed; empty: any
  std::optional<int> max_tokens = {};           // of a text, where that is less than the context

  // "last token, normalised"
  std::string describe() const;
};

}  // namespace octavo

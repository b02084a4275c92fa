// pooling_kind.h - how the rows of a text become one vector. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

enum class Pooling : uint8_t {
  kNone,
  kLast,  // the last token's row
  kMean,  // the mean of all tokens' rows
};

}  // namespace octavo

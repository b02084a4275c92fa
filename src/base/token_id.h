// token_id.h - the type of token ids, shared by the text and engine layers.
#pragma once

#include <cstdint>

namespace octavo {

using TokenId = int32_t;

}  // namespace octavo

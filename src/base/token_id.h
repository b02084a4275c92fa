// token_id.h - what the text side hands to the engine side and back.
#pragma once

#include <cstdint>

namespace octavo {

using TokenId = int32_t;

}  // namespace octavo

// attention_item.h - one piece of paged attention. No MLX.
#pragma once

#include <cstdint>

namespace octavo::cpu {

struct AttentionItem {};

}  // namespace octavo::cpu

// lora_use.h - what an adapter is read for. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

enum class LoraUse : uint8_t {
  kServe,  // one of several, in a slot
  kMerge,  // --merge-adapter
};

}  // namespace octavo

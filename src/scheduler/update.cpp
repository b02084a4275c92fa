#include "scheduler/update.h"

namespace octavo {

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "?";
}

std::string_view name_of(CacheMiss miss) {
  switch (miss) {
    case CacheMiss::kOff:
      return "off";
    case CacheMiss::kLogprobs:
      return "logprobs";
    case CacheMiss::kSalt:
      return "salt";
    case CacheMiss::kNew:
      return "new";
    case CacheMiss::kDiffers:
      return "differs";
    case CacheMiss::kEvicted:
      return "evicted";
    case CacheMiss::kSnapshot:
      return "snapshot";
    case CacheMiss::kBlock:
      return "block";
  }
  return "?";
}

}  // namespace octavo

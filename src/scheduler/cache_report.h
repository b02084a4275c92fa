// cache_report.h - how much of a prompt was cached, and why not more. No MLX.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo {

enum class CacheMiss : uint8_t {
  kOff,       // the prefix cache is disabled
  kLogprobs,  // prompt_logprobs needs every row of the prompt
  kSalt,      // nothing is cached with this salt
  kNew,       // new tokens from `at` on, for this owner
  kDiffers,   // differs at `at` from the most similar prompt
  kEvicted,   // was cached, but the pages were evicted
  kSnapshot,  // pages are cached, but there is no snapshot of the recurrent state
  kBlock,     // less than one page is missing
};

std::string_view name_of(CacheMiss miss);

// Counts, positions and reasons only: callers without a key share one history, so the text of
// another caller's prompt must not be in here.
struct CacheReport {
  int prompt = 0;  // tokens
  int hit = 0;     // tokens not recomputed
  int disk = 0;    // of these, read from disk
  std::vector<CacheMiss> misses = {};
  int lost = 0;  // with kEvicted or kSnapshot: tokens recomputed
  int at = -1;   // position of the first token that is new or differs; -1: none
};

}  // namespace octavo

// cache_report.h - how much of a prompt was cached, and why not more. No MLX.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo {

enum class CacheMiss : uint8_t {
  kOff,       // the prefix cache is switched off
  kLogprobs,  // every row of the prompt was asked for
  kSalt,      // nothing is known under this salt
  kNew,       // nobody of the same owner has asked this before, from `at` on
  kDiffers,   // the prompt most like it goes on in another way at `at`
  kEvicted,   // it was known, but its pages went to others
  kSnapshot,  // pages are there, but no state of the layers that keep one
  kBlock,     // less than a page is left
};

std::string_view name_of(CacheMiss miss);

// Counts, positions and reasons only: callers without a key share one history, so the text of
// another caller's prompt must not be in here.
struct CacheReport {
  int prompt = 0;  // tokens
  int hit = 0;     // that needed no computing
  int disk = 0;    // of these, brought back from the disk
  std::vector<CacheMiss> misses = {};
  int lost = 0;  // with kEvicted or kSnapshot: tokens computed once more
  int at = -1;   // position of the first token that is new or differs; -1: none
};

}  // namespace octavo

// totals.h - what all rounds of scheduler_fuzz did. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo {

struct FuzzTotals {
  int64_t operations = 0, requests = 0, finished = 0, aborted = 0, errors = 0, tokens = 0,
          pooled = 0, constrained = 0, races = 0, resumed = 0, background = 0, adapted = 0,
          adapter_loads = 0, images = 0, whole = 0, grammar_failures = 0, choices_aborted = 0;
  uint64_t steps = 0, preemptions = 0, hits = 0, failed_steps = 0, drafts = 0, draft_tokens = 0,
           accepted = 0, accepted_with_state = 0, restored = 0, corrupt = 0, fingerprint = 0,
           images_encoded = 0, image_hits = 0;
  size_t most_in_flight = 0;
};

}  // namespace octavo

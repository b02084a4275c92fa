#include "attention_check.h"

#include <fmt/format.h>

#include <cstdio>

#include "kernels/testing/attention_trial.h"

namespace octavo {

int check_attention(int batches) {
  std::mt19937 random(23);
  int different = 0;
  for (int i = 0; i < batches; ++i) {
    AttentionTrial trial(random);
    const auto expected = trial.expected();
    const int64_t numbers = trial.differences(trial.run(), expected);
    if (numbers == 0) continue;
    fmt::print(stderr, "attention batch {}: {} numbers differ: {}\n", i, numbers, trial.describe());
    ++different;
  }
  fmt::print(stderr, "{} random batches of attention, {} differ from the reference\n", batches,
             different);
  return different;
}

}  // namespace octavo

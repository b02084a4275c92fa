// strip_claims.h (cpu) - how threads share out the strips of one or several products. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace octavo::cpu {

inline constexpr int64_t kFewRows = 32;  // up to here every weight is read once

// The longest claim worth taking: with many rows, what a thread keeps in its cache while they pass.
constexpr int64_t longest_claim(int64_t rows) { return rows <= kFewRows ? 64 : 8; }

struct StripRun {
  int64_t strips;
  int64_t longest;  // claim
};

// Strips [begin, end) of run `run`, which a thread takes at once.
struct StripClaim {
  size_t run;
  int64_t begin;
  int64_t end;
};

// Long claims first, for they read memory best, then ever shorter ones, so that the threads finish
// together.
std::vector<StripClaim> strip_claims(std::span<const StripRun> runs, int threads);

}  // namespace octavo::cpu

// bits_attention.h - for tests: attention rows compared bit by bit between ways of running them.
#pragma once

#include <string>
#include <vector>

#include "kernels/cpu/isa.h"

namespace octavo {

struct BitsReport {
  int cases = 0;                      // rows compared
  std::vector<std::string> failures;  // at most one per way of running
};

// One sequence on `isa`: whole and alone, against chunks, one token at a time, neighbours, other
// block sizes, and window, soft cap and sinks, for every type of number. Pages hold NaN wherever
// nothing was written, and what lies before the window has no page at all.
BitsReport check_attention_bits(cpu::Isa isa);

}  // namespace octavo

// cases.h - the benchmark cases by operation, and helpers that create their arrays.
#pragma once

#include <vector>

#include "bench/case_runner.h"
#include "kernels/runtime/mlx.h"

namespace octavo::bench {

void bench_linear(CaseRunner& runner);
void bench_attention(CaseRunner& runner);
void bench_experts(CaseRunner& runner);
void bench_states(CaseRunner& runner);
void bench_small_ops(CaseRunner& runner);

// Values spread evenly over [-1, 1), evaluated. The same shape always gives the same values.
mx::array spread_array(const mx::Shape& shape, mx::Dtype dtype);

// A copy in separate memory.
mx::array copy_of(const mx::array& array);
std::vector<mx::array> copies_of(const mx::array& array, int count);

}  // namespace octavo::bench

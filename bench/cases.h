// cases.h - the cases by operation, and the arrays they are made of.
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

// Evenly spread in [-1, 1), evaluated; the same numbers for the same shape.
mx::array spread_array(const mx::Shape& shape, mx::Dtype dtype);

// An array of the same numbers in memory of its own.
mx::array copy_of(const mx::array& array);
std::vector<mx::array> copies_of(const mx::array& array, int count);

}  // namespace octavo::bench

// serve_report.h - formats the results of octavo bench serve as a table or JSON. No MLX.
#pragma once

#include <string>

#include "bench/load/load_figures.h"
#include "cli/bench/serve_flags.h"

namespace octavo {

struct BenchServeReport {
  const BenchServeFlags& flags;
  const std::string& model;
  const bench::LoadResult& result;
  const bench::LoadFigures& figures;
};

// The table of `vllm bench serve`, followed by the failures, if any.
std::string bench_serve_table(const BenchServeReport& report);

// Uses the names of vLLM's result files for the figures that vLLM has.
std::string bench_serve_json(const BenchServeReport& report);

}  // namespace octavo

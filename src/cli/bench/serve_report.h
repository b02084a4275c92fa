// serve_report.h - the figures of octavo bench serve as a table or as JSON. No MLX.
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

// The lines of `vllm bench serve`, and behind them what went wrong, if anything.
std::string bench_serve_table(const BenchServeReport& report);

// Names as in vLLM's result files where it has the figure.
std::string bench_serve_json(const BenchServeReport& report);

}  // namespace octavo

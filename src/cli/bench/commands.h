// commands.h - the subcommands of octavo bench.
#pragma once

#include <CLI/CLI.hpp>

namespace octavo {

void add_bench_model(CLI::App& bench);
void add_bench_throughput(CLI::App& bench);
void add_bench_lengths(CLI::App& bench);
void add_bench_serve(CLI::App& bench);

}  // namespace octavo

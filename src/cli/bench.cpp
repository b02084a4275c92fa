// octavo bench - how fast this machine, the kernels and a model are.
#include "cli/bench_commands.h"
#include "cli/commands.h"

namespace octavo {

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure a model's speed on this machine");
  bench->require_subcommand(1);
  add_bench_model(*bench);
}

}  // namespace octavo

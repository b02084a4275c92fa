// commands.h - octavo's subcommands. Each function adds one to the parser, which runs it if chosen.
#pragma once

#include <CLI/CLI.hpp>

namespace octavo {

void add_serve_command(CLI::App& app);
void add_launch_command(CLI::App& app);
void add_worker_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_pull_command(CLI::App& app);
void add_ls_command(CLI::App& app);
void add_rm_command(CLI::App& app);
void add_ps_command(CLI::App& app);
void add_stop_command(CLI::App& app);
void add_top_command(CLI::App& app);
void add_quantize_command(CLI::App& app);
void add_doctor_command(CLI::App& app);

}  // namespace octavo

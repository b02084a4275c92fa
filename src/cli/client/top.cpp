// octavo top - shows what a running server is doing, once a second.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "cli/client/running_server.h"
#include "cli/commands.h"

namespace octavo {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);

struct TopFlags {
  ServerAccess access;
  bool once = false;
};

void show(const TopFlags& flags) {
  // Moves to the top left and clears the screen.
  constexpr const char* kClear = "\x1b[H\x1b[J";
  const bool once = flags.once || isatty(STDOUT_FILENO) == 0;
  ServerReading before = read_server(flags.access);
  do {
    std::this_thread::sleep_for(kInterval);
    ServerReading now = read_server(flags.access);
    const std::string table = table_of(before, now, std::chrono::system_clock::now());
    fmt::print("{}{}", once ? "" : kClear, table);
    if (!once) fmt::print("\n{}, every second; Ctrl-C ends\n", flags.access.url);
    std::fflush(stdout);
    before = std::move(now);
  } while (!once);
}

}  // namespace

void add_top_command(CLI::App& app) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* command = app.add_subcommand(
      "top",
      "Show what a running server is doing: requests, tokens per second and KV cache use of each\n"
      "loaded model, once a second");
  command->add_flag("--once", flags->once,
                    "Print one table and end; also if the output is not a terminal");
  flags->access.add_to(*command);
  command->callback([flags] { show(*flags); });
}

}  // namespace octavo

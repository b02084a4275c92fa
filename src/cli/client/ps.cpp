// octavo ps - lists the models that a running server has in memory.
#include <fmt/format.h>

#include <memory>
#include <thread>

#include "cli/client/running_server.h"
#include "cli/commands.h"

namespace octavo {
namespace {

void list_running(const ServerAccess& access) {
  const ServerReading before = read_server(access);
  if (before.models.empty()) {
    fmt::print(stderr, "No model is loaded; the first request to one loads it.\n");
    return;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const ServerReading now = read_server(access);
  fmt::print("{}", table_of(before, now, std::chrono::system_clock::now()));
}

}  // namespace

void add_ps_command(CLI::App& app) {
  auto access = std::make_shared<ServerAccess>();
  CLI::App* command = app.add_subcommand(
      "ps",
      "List the models that a running server has in memory: their size, requests, tokens per\n"
      "second over half a second, and when they are unloaded unless they are used");
  access->add_to(*command);
  command->callback([access] { list_running(*access); });
}

}  // namespace octavo

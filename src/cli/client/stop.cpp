// octavo stop - unloads a model of a running server.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "bench/load/http_call.h"
#include "cli/client/running_server.h"
#include "cli/commands.h"

namespace octavo {
namespace {

struct StopFlags {
  std::string model;
  ServerAccess access;
};

void stop(const StopFlags& flags) {
  const bench::HttpReply reply =
      bench::http_call(bench::parse_server_url(flags.access.url),
                       {.path = "/models/unload",
                        .json = nlohmann::json{{"model", flags.model}}.dump(),
                        .api_key = flags.access.api_key});
  if (reply.ok()) {
    fmt::print("{} is no longer loaded\n", flags.model);
    return;
  }
  const bool one_model =
      reply.status == 404 && reply.body.find("/models/unload") != std::string::npos;
  throw SetupError(
      fmt::format("{}: {}{}", flags.access.url, bench::reason_of(reply),
                  one_model ? "; this server has one model: end the server to unload it" : ""));
}

}  // namespace

void add_stop_command(CLI::App& app) {
  auto flags = std::make_shared<StopFlags>();
  CLI::App* command = app.add_subcommand(
      "stop",
      "Unload a model of a running server. Open requests finish first; the next request to the\n"
      "model loads it again");
  command->add_option("MODEL", flags->model, "Name of the model, as octavo ps shows it")
      ->required();
  flags->access.add_to(*command);
  command->callback([flags] { stop(*flags); });
}

}  // namespace octavo

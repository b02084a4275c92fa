// octavo ls - lists the models on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands.h"
#include "hub/aliases.h"
#include "hub/find_model.h"

namespace octavo {
namespace {

struct LsFlags {
  bool json = false;
  bool aliases = false;
};

void print_json(const std::vector<LocalModel>& models) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LocalModel& model : models) {
    list.push_back({{"name", model.name},
                    {"bytes", model.bytes},
                    {"kind", model.kind},
                    {"place", model.place},
                    {"complete", model.is_complete},
                    {"path", model.path.string()}});
  }
  fmt::print("{}\n", list.dump(2));
}

void print_table(const std::vector<LocalModel>& models) {
  size_t width = 4;
  for (const LocalModel& model : models) width = std::max(width, model.name.size());
  fmt::print("{:<{}}  {:>10}  {:<14}  PLACE\n", "NAME", width, "SIZE", "KIND");
  for (const LocalModel& model : models) {
    fmt::print("{:<{}}  {:>10}  {:<14}  {}{}\n", model.name, width, format_bytes(model.bytes),
               model.kind, model.place, model.is_complete ? "" : ", incomplete");
  }
}

void print_aliases() {
  size_t width = 0;
  for (const Alias& alias : all_aliases()) width = std::max(width, alias.name.size());
  for (const Alias& alias : all_aliases())
    fmt::print("{:<{}}  {}\n", alias.name, width, alias.model);
}

void print_aliases_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Alias& alias : all_aliases())
    list.push_back({{"name", alias.name}, {"model", alias.model}});
  fmt::print("{}\n", list.dump(2));
}

void run(const LsFlags& flags) {
  if (flags.aliases) {
    return flags.json ? print_aliases_json() : print_aliases();
  }
  const HubSettings settings = hub_settings_from_env();
  const std::vector<LocalModel> models = local_models(settings);
  if (flags.json) return print_json(models);
  if (models.empty()) {
    fmt::print(stderr, "No models found in {}, LM Studio or Ollama; try: octavo run {}\n",
               settings.cache.string(), all_aliases().front().name);
    return;
  }
  print_table(models);
}

}  // namespace

void add_ls_command(CLI::App& app) {
  auto flags = std::make_shared<LsFlags>();
  CLI::App* command = app.add_subcommand(
      "ls", "List the models on this machine, from the Hugging Face cache, LM Studio and Ollama");
  command->add_flag("--json", flags->json, "Print a JSON array that includes paths");
  command->add_flag("--aliases", flags->aliases, "List the aliases (short model names) instead");
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo

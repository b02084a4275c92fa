#include "cli/serve_front_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/option_group.h"
#include "cli/parse/number_check.h"

namespace octavo {
namespace {

constexpr const char* kFrontGroup = "Several models";

// Those that the front itself uses or sets.
constexpr std::array kNotForModels = {"--config",
                                      "--host",
                                      "--port",
                                      "--uds",
                                      "--api-key",
                                      "--api-key-file",
                                      "--max-requests-per-key",
                                      "--drain-delay",
                                      "--allowed-hosts",
                                      "--allowed-origins",
                                      "--served-model-name",
                                      "--memory-fraction",
                                      "--memory-limit",
                                      "--log-format",
                                      "--access-log",
                                      "--max-connections",
                                      "--state-dir",
                                      "--state-max-bytes",
                                      "--batch-concurrency",
                                      "--status-fd",
                                      "--plan-only",
                                      "--behind-front",
                                      "--share-prefix-cache",
                                      "--help"};

std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? std::string() : "--" + option.get_lnames().front();
}

}  // namespace

void FrontFlags::add_to(CLI::App& command) {
  const OptionGroup option{command, kFrontGroup};
  option
      .without_default("--models-dir", models_dir,
                       "Folder with further models: each .gguf file and each model folder in it is "
                       "served under its name")
      ->type_name("FOLDER");
  option
      .without_default("--preset", preset,
                       "TOML file with one section per model: its name, flags of octavo serve, "
                       "model, aliases, preload, pinned, keep-alive and kv-share")
      ->type_name("FILE");
  option("--models-max", models_max, "Maximum number of loaded models; 0: as many as fit in memory")
      ->transform(whole_number(0));
  option("--keep-alive", keep_alive,
         "Time that an unused model stays loaded, for example 5m, 300 (seconds) or 1h30m; 0 "
         "unloads it after each request, -1 never. A request's keep_alive takes precedence");
  option("--kv-share", kv_share,
         "Maximum part of the memory of all models that the KV cache of one model gets, unless "
         "--kv-memory is given")
      ->transform(real_number(0, false, 1));
  option("--load-timeout", load_timeout,
         "Seconds that a request waits for its model to be loaded; then it gets 503 with "
         "Retry-After")
      ->transform(real_number(0, false));
  option.without_default("--preload", preload, "Load this model at start-up; may be repeated")
      ->allow_extra_args(false)
      ->type_name("MODEL");
  command
      .add_flag("--allow-pull", allow_pull,
                "Allow requests to download models from the Hugging Face hub by naming them")
      ->group(kFrontGroup);
}

bool FrontFlags::any_given(const CLI::App& command) {
  const auto options = command.get_options([](const CLI::Option* option) {
    return option->get_group() == kFrontGroup && option->count() > 0;
  });
  return !options.empty();
}

std::vector<std::string> flags_for_models(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = long_name(*option);
    const bool is_own = name.empty() || option->get_group() == kFrontGroup ||
                        std::ranges::count(kNotForModels, name) > 0;
    if (is_own || option->count() == 0) continue;
    for (const std::string& value : option->results())
      flags.push_back(fmt::format("{}={}", name, value));
  }
  return flags;
}

}  // namespace octavo

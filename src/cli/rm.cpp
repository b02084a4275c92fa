// octavo rm - removes a model from the Hugging Face cache.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "hub/remove_model.h"

namespace octavo {
namespace {

struct RmFlags {
  std::string model;
  bool yes = false;
};

bool is_confirmed(const RmFlags& flags, const Removal& removal) {
  if (flags.yes) return true;
  if (isatty(STDIN_FILENO) == 0)
    throw SetupError("cannot ask for confirmation without a terminal; use --yes to remove " +
                     flags.model);
  fmt::print("Remove {} from {}? This frees {}. [y/N] ", flags.model, removal.repo.string(),
             format_bytes(removal.bytes));
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void run(const RmFlags& flags) {
  const Removal removal = plan_removal(flags.model, hub_settings_from_env());
  if (!is_confirmed(flags, removal)) return fmt::print("Nothing removed\n");
  remove_planned(removal);
  fmt::print("Removed {}, {} freed\n", flags.model, format_bytes(removal.bytes));
}

}  // namespace

void add_rm_command(CLI::App& app) {
  auto flags = std::make_shared<RmFlags>();
  CLI::App* command = app.add_subcommand(
      "rm",
      "Remove a model from the Hugging Face cache. Keeps files that other revisions use, and never "
      "touches models of other programs");
  command->add_option("MODEL", flags->model, "A name from `octavo ls`")->required();
  command->add_flag("-y,--yes", flags->yes, "Do not ask for confirmation");
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo

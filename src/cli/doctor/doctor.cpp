// octavo doctor - checks whether this machine, or several, are ready for octavo and suggests fixes.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/doctor/checks.h"
#include "cli/doctor/facts.h"
#include "cli/doctor/hosts.h"
#include "cli/parse/number_check.h"
#include "cli/parse/usage_error.h"

namespace octavo {
namespace {

struct DoctorFlags {
  uint16_t port = 8000;
  bool json = false;
  DoctorHostsFlags hosts;
};

void run(const DoctorFlags& flags) {
  if (!flags.hosts.file.empty()) return check_hosts_of(flags.hosts, flags.json);
  if (!flags.hosts.model.empty() || flags.hosts.quick)
    throw UsageError("octavo doctor: MODEL and --quick need --hosts as well");
  const DoctorFacts facts = read_doctor_facts(flags.port);
  const std::vector<Finding> findings = check_facts(facts);
  if (flags.json) {
    fmt::print("{}\n", to_json(facts, findings));
  } else {
    fmt::print("octavo {}\n{}", facts.version, to_text(findings));
  }
  if (worst_of(findings) == Health::kProblem) throw CLI::RuntimeError(1);
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Check the processor, memory, limits, MLX, the port and the model folders, and suggest "
      "fixes. Exits with status 1 if any check reports a problem.\n\n"
      "With --hosts, check the machines of a hostfile instead: whether each can be reached and "
      "has\n"
      "the same octavo, the round trip and the bandwidth between the first one, which must be "
      "this\n"
      "machine, and each of the others, and how fast each reads its memory (needs 1 GiB). With a\n"
      "model, also propose how to run it.");
  command->add_option("--port", flags->port, "The port that octavo serve would listen on")
      ->transform(port_number())
      ->capture_default_str();
  command->add_flag("--json", flags->json,
                    "Print the checks and the facts as one JSON object, for bug reports");
  flags->hosts.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo

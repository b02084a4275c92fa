// octavo doctor - checks whether this machine is ready for octavo and suggests fixes.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/doctor/checks.h"
#include "cli/doctor/facts.h"
#include "cli/parse/number_check.h"

namespace octavo {
namespace {

struct DoctorFlags {
  uint16_t port = 8000;
  bool json = false;
};

void print_text(const std::string& version, const std::vector<Finding>& findings) {
  fmt::print("octavo {}\n", version);
  for (const Finding& finding : findings) {
    fmt::print("  {:<9}{:<20}{}\n", name_of(finding.health), finding.name, finding.text);
    if (!finding.advice.empty()) fmt::print("  {:<29}{}\n", "", finding.advice);
  }
}

void run(const DoctorFlags& flags) {
  const DoctorFacts facts = read_doctor_facts(flags.port);
  const std::vector<Finding> findings = check_facts(facts);
  if (flags.json) {
    fmt::print("{}\n", to_json(facts, findings));
  } else {
    print_text(facts.version, findings);
  }
  if (worst_of(findings) == Health::kProblem) throw CLI::RuntimeError(1);
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = app.add_subcommand("doctor",
                                         "Check the processor, memory, limits, MLX, the port and "
                                         "the model folders, and suggest fixes. "
                                         "Exits with status 1 if any check reports a problem");
  command->add_option("--port", flags->port, "The port that octavo serve would listen on")
      ->transform(port_number())
      ->capture_default_str();
  command->add_flag("--json", flags->json,
                    "Print the checks and the machine's facts as one JSON object, for bug reports");
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo

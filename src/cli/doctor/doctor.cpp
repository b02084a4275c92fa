// octavo doctor - whether this machine is ready for octavo, and what to do where it is not.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/doctor/checks.h"
#include "cli/doctor/facts.h"

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

void print_json(const std::string& version, const std::vector<Finding>& findings) {
  nlohmann::json checks = nlohmann::json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"name", finding.name},
                      {"status", name_of(finding.health)},
                      {"text", finding.text},
                      {"advice", finding.advice}});
  }
  const nlohmann::json report = {
      {"version", version}, {"status", name_of(worst_of(findings))}, {"checks", checks}};
  fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void run(const DoctorFlags& flags) {
  const DoctorFacts facts = read_doctor_facts(flags.port);
  const std::vector<Finding> findings = check_facts(facts);
  (flags.json ? print_json : print_text)(facts.version, findings);
  if (worst_of(findings) == Health::kProblem) throw CLI::RuntimeError(1);
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Check processor, memory, limits, MLX, port and model folders, and say what to do. Leaves "
      "with 1 when there is a problem");
  command->add_option("--port", flags->port, "The port octavo serve would listen on")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo

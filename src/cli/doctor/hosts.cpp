#include "cli/doctor/hosts.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "bench/step_cost.h"
#include "cli/distributed/host_checks.h"
#include "cli/distributed/probe_hosts.h"
#include "cli/doctor/checks.h"
#include "cli/model_by_name.h"
#include "engine/plan_engine.h"
#include "text/helper_jobs.h"

namespace octavo {
namespace {

ModelFacts facts_of_model(const std::string& name) {
  const std::string path = find_model_by_name(name).path;
  const Checkpoint checkpoint = Checkpoint::open(path);
  const ModelDescription model = describe_model(checkpoint, EngineOptions{});
  const int layers = static_cast<int>(model.plan.layers.size());
  // What one token reads. The output matrix counts as a layer.
  const auto bytes = static_cast<double>(bench::step_weights(checkpoint, model.plan).read_by(1));
  const double each = bytes / (layers + 1);
  const auto whole = static_cast<double>(model.weights.embeddings + model.weights.layer_input);
  return {.name = name,
          .shape = {.layers = layers,
                    .layer_bytes = each,
                    .head_bytes = each,
                    .row_bytes = static_cast<double>(model.plan.hidden) *
                                 static_cast<double>(size_of(model.dtype))},
          .tensor = {.gathers = gathered_columns(model.plan),
                     .number_bytes = static_cast<double>(size_of(model.dtype)),
                     .vocab = model.plan.vocab,
                     .divided_bytes = static_cast<double>(model.weights_bytes) - whole,
                     .whole_bytes = whole,
                     .most_ranks = most_tensor_ranks(model.plan)},
          .weight_bytes = model.weights_bytes};
}

void show_host(std::string_view host) { fmt::print(stderr, "measuring {} ...\n", host); }

}  // namespace

void DoctorHostsFlags::add_to(CLI::App& command) {
  const std::string group = "Several machines";
  CLI::Option* hosts =
      command.add_option("--hosts,--hostfile", file, "Hostfile of mlx.launch with the machines")
          ->type_name("FILE")
          ->group(group);
  command
      .add_option("--remote-program", remote_program,
                  "Name or path of octavo on the other machines")
      ->capture_default_str()
      ->type_name("PATH")
      ->needs(hosts)
      ->group(group);
  command.add_flag("--quick", quick, "Do not measure the machines' memory, and propose nothing")
      ->group(group);
  command
      .add_flag("--distributed-allow-public", allow_public, "Allow addresses that are not private")
      ->needs(hosts)
      ->group(group);
  command.add_option("MODEL", model, "Propose how to run this model on the machines");
}

void check_hosts_of(const DoctorHostsFlags& flags, bool json) {
  // A mistake in the name of the model is found before anything is measured.
  std::optional<ModelFacts> model;
  if (!flags.model.empty()) model = facts_of_model(flags.model);
  const std::vector<HostFacts> hosts =
      probe_hosts(read_hostfile(flags.file), {.program = own_program(),
                                              .remote_program = flags.remote_program,
                                              .quick = flags.quick,
                                              .allow_public = flags.allow_public,
                                              .progress = show_host});
  std::vector<Finding> findings = check_hosts(hosts);
  if (model)
    if (auto proposal = propose(hosts, *model)) findings.push_back(std::move(*proposal));
  if (json) {
    fmt::print("{}\n", hosts_json(hosts, findings));
  } else {
    fmt::print("octavo {}\n{}", OCTAVO_VERSION, to_text(findings));
  }
  if (worst_of(findings) == Health::kProblem) throw CLI::RuntimeError(1);
}

}  // namespace octavo

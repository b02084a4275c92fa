#include "cli/doctor/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "server/server_options.h"

namespace octavo {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kSmallMemory = kGiB;     // fits a model of a few hundred million parameters
constexpr uint64_t kLittleDisk = 5 * kGiB;  // fits one quantised 8B model
constexpr uint64_t kOtherDescriptors = 64;  // model files, logs, sockets of the process itself

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

Finding check_processor(const ProcessorFacts& cpu) {
  Finding finding{.name = "processor"};
  if (!cpu.isa_error.empty()) {
    return {Health::kProblem, finding.name, cpu.isa_error,
            "Unset OCTAVO_ISA, or set it to a supported instruction set."};
  }
  const std::string best = cpu.available_isas.empty() ? "" : cpu.available_isas.back();
  finding.text = fmt::format("{} kernels (available: {})", cpu.active_isa,
                             fmt::join(cpu.available_isas, ", "));
  if (cpu.active_isa != best) {
    finding.health = Health::kWarning;
    finding.advice = fmt::format("OCTAVO_ISA selects {}: unset it for {}.", cpu.active_isa, best);
  } else if (best == "scalar") {
    finding.health = Health::kWarning;
    finding.text = "no AVX2: scalar kernels, many times slower";
    finding.advice =
        "Use a processor with AVX2, FMA and F16C; in a virtual machine, pass the host's CPU "
        "through.";
  } else if (has(cpu.flags, "amx_bf16") && best != "amx") {
    finding.health = Health::kWarning;
    finding.text += "; AMX is present but this process is not allowed to use it";
    finding.advice =
        "Use Linux 5.16 or newer and allow arch_prctl (a container's seccomp profile may block "
        "it).";
  }
  return finding;
}

Finding check_cores(const CoreFacts& cores) {
  Finding finding{.name = "cores"};
  finding.text = fmt::format("{} thread{} on {} of {} cores", cores.threads,
                             cores.threads == 1 ? "" : "s", cores.allowed, cores.machine);
  double limit = cores.allowed;
  if (cores.cgroup_quota) {
    limit = std::min(limit, *cores.cgroup_quota);
    finding.text += fmt::format(", cgroup quota {:g}", *cores.cgroup_quota);
  }
  if (cores.threads > std::max(1.0, limit)) {
    finding.health = Health::kWarning;
    finding.advice = fmt::format(
        "More threads than cores slow each other down: set OCTAVO_THREADS to {} or unset it.",
        static_cast<int>(std::max(1.0, limit)));
  } else if (cores.cgroup_quota && *cores.cgroup_quota < cores.allowed &&
             std::abs(*cores.cgroup_quota - std::round(*cores.cgroup_quota)) > 0.01) {
    finding.health = Health::kWarning;
    finding.advice = "A fraction of a core cannot be used: give the cgroup whole cores.";
  }
  return finding;
}

Finding check_memory(const MemoryFacts& memory) {
  Finding finding{.name = "memory"};
  const uint64_t usable = std::min(memory.machine_bytes, memory.cgroup_bytes.value_or(UINT64_MAX));
  finding.text = fmt::format("{} usable", format_bytes(usable));
  if (usable < memory.machine_bytes)
    finding.text +=
        fmt::format(" (cgroup limit; the machine has {})", format_bytes(memory.machine_bytes));
  if (memory.available_bytes > 0)
    finding.text += fmt::format(", {} free on the machine", format_bytes(memory.available_bytes));
  if (usable < kSmallMemory) {
    finding.health = Health::kWarning;
    finding.advice =
        "Few models fit: raise the limit (MemoryMax, --memory, resources.limits), or choose a "
        "small model; octavo info MODEL shows its memory plan.";
  } else if (memory.available_bytes > 0 && memory.available_bytes < usable / 2) {
    finding.health = Health::kWarning;
    finding.advice =
        "Other programs use more than half of the memory: stop some, or lower --memory-fraction.";
  }
  return finding;
}

Finding check_mlx(const DoctorFacts& facts) {
  Finding finding{.name = "MLX", .text = facts.mlx_loaded};
  if (facts.mlx_loaded != facts.mlx_built) {
    finding.health = Health::kProblem;
    finding.text =
        fmt::format("{} is loaded, octavo was built with {}", facts.mlx_loaded, facts.mlx_built);
    finding.advice = "Unset LD_LIBRARY_PATH and LD_PRELOAD, or reinstall octavo.";
  }
  return finding;
}

Finding check_gpu(const DoctorFacts& facts) {
  Finding finding{.name = "GPU", .text = facts.gpu};
  if (!facts.gpu_difference.empty()) {
    finding.health = Health::kWarning;
    finding.text += "; " + facts.gpu_difference;
    finding.advice = "Report it with the output of octavo doctor --json.";
  }
  return finding;
}

Finding check_port(const PortFacts& port) {
  Finding finding{.name = "port", .text = fmt::format("{} is free", port.port)};
  if (!port.error.empty()) {
    finding.health = Health::kProblem;
    finding.text = port.error;
    finding.advice =
        "Choose another port with octavo serve --port, or stop the program that uses it.";
  }
  return finding;
}

Finding check_folder(const FolderFacts& folder) {
  Finding finding{.name = folder.name, .text = folder.path};
  const auto worse = [&](Health health, const std::string& text, std::string advice) {
    finding.health = health;
    finding.text += text;
    finding.advice = std::move(advice);
  };
  if (folder.exists && !folder.readable) {
    worse(folder.ours ? Health::kProblem : Health::kWarning, ", not readable",
          fmt::format("Make it readable for this user: chmod -R u+rX, or chown, {}", folder.path));
  } else if (!folder.ours) {
    finding.text += folder.exists ? ", read in place" : ", not found";
  } else if (!folder.writable) {
    worse(
        Health::kWarning, folder.exists ? ", not writable" : ", cannot be created",
        "Models cannot be downloaded: make it writable for this user, or set HF_HOME to a writable "
        "folder.");
  } else if (folder.free_bytes < kLittleDisk) {
    worse(Health::kWarning, fmt::format(", only {} free", format_bytes(folder.free_bytes)),
          "Free some space, or set HF_HOME to a folder on a larger disk.");
  } else {
    finding.text += fmt::format("{}, {} free", folder.exists ? "" : " (created when needed)",
                                format_bytes(folder.free_bytes));
  }
  return finding;
}

Finding check_open_files(uint64_t limit) {
  Finding finding{.name = "open files", .text = fmt::format("up to {}", limit)};
  const uint64_t wanted = static_cast<uint64_t>(server::kMaxConnections) + kOtherDescriptors;
  if (limit < wanted) {
    finding.health = Health::kWarning;
    finding.advice = fmt::format(
        "Every connection needs one file descriptor: raise the hard limit to {} (ulimit -Hn, "
        "LimitNOFILE), or lower octavo serve --max-connections.",
        wanted);
  } else if (limit > UINT64_MAX / 2) {
    finding.text = "no limit";
  }
  return finding;
}

using Json = nlohmann::ordered_json;

template <typename Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json checks_json(const std::vector<Finding>& findings) {
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"name", finding.name},
                      {"status", name_of(finding.health)},
                      {"detail", finding.text},
                      {"fix", finding.advice}});
  }
  return checks;
}

Json folders_json(const std::vector<FolderFacts>& folders) {
  Json list = Json::array();
  for (const FolderFacts& folder : folders) {
    list.push_back({{"name", folder.name},
                    {"path", folder.path},
                    {"exists", folder.exists},
                    {"readable", folder.readable},
                    {"writable", folder.writable},
                    {"free_bytes", folder.free_bytes}});
  }
  return list;
}

Json facts_json(const DoctorFacts& facts) {
  const ProcessorFacts& cpu = facts.processor;
  Json json;
  json["container"] = text_or_null(facts.container);
  json["gpu"] = text_or_null(facts.gpu);
  json["gpu_difference"] = text_or_null(facts.gpu_difference);
  json["processor"] = {{"isa", text_or_null(cpu.active_isa)},
                       {"available_isas", cpu.available_isas},
                       {"flags", fmt::format("{}", fmt::join(cpu.flags, " "))}};
  json["cores"] = {{"machine", facts.cores.machine},
                   {"allowed", facts.cores.allowed},
                   {"cgroup_quota", value_or_null(facts.cores.cgroup_quota)},
                   {"threads", facts.cores.threads}};
  json["topology"] = {{"packages", facts.cores.topology.packages()},
                      {"numa_nodes", facts.cores.topology.nodes()},
                      {"cores", facts.cores.topology.cores()},
                      {"efficient_cores", facts.cores.topology.efficient_cores()},
                      {"cpus", facts.cores.topology.cpus.size()}};
  const uint64_t available = facts.memory.available_bytes;
  json["memory"] = {{"machine_bytes", facts.memory.machine_bytes},
                    {"cgroup_bytes", value_or_null(facts.memory.cgroup_bytes)},
                    {"available_bytes", available == 0 ? Json() : Json(available)}};
  json["mlx"] = {{"built", facts.mlx_built}, {"loaded", facts.mlx_loaded}};
  json["port"] = {{"number", facts.port.port}, {"error", text_or_null(facts.port.error)}};
  json["folders"] = folders_json(facts.folders);
  json["open_files"] = facts.open_files > UINT64_MAX / 2 ? Json() : Json(facts.open_files);
  return json;
}

}  // namespace

std::string_view name_of(Health health) {
  constexpr std::array<std::string_view, 3> kNames = {"ok", "warning", "problem"};
  return kNames.at(static_cast<size_t>(health));
}

std::vector<Finding> check_facts(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  if (!facts.container.empty()) findings.push_back({.name = "container", .text = facts.container});
  if (!facts.gpu.empty()) findings.push_back(check_gpu(facts));
  findings.push_back(check_processor(facts.processor));
  findings.push_back(check_cores(facts.cores));
  findings.push_back({.name = "topology", .text = describe(facts.cores.topology)});
  findings.push_back(check_memory(facts.memory));
  findings.push_back(check_mlx(facts));
  findings.push_back(check_port(facts.port));
  for (const FolderFacts& folder : facts.folders) findings.push_back(check_folder(folder));
  findings.push_back(check_open_files(facts.open_files));
  return findings;
}

Health worst_of(const std::vector<Finding>& findings) {
  Health worst = Health::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.health);
  return worst;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("  {:<9}{:<20}{}\n", name_of(finding.health), finding.name, finding.text);
    if (!finding.advice.empty()) text += fmt::format("  {:<29}{}\n", "", finding.advice);
  }
  return text;
}

std::string to_json(const DoctorFacts& facts, const std::vector<Finding>& findings) {
  Json report;
  report["version"] = facts.version;
  report["status"] = name_of(worst_of(findings));
  report["checks"] = checks_json(findings);
  report["facts"] = facts_json(facts);
  // Paths are bytes, not always UTF-8.
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octavo

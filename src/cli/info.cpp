// octavo info - what a checkpoint is and how it would fit, without loading it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "kernels/cpu/isa.h"

namespace octavo {
namespace {

void row(const char* name, const std::string& value) { fmt::print("  {:<22}{}\n", name, value); }

// The parts of the layers, each once, with how many layers have it.
void print_layers(const DecoderPlan& plan) {
  std::vector<std::pair<std::string, int>> parts;
  const auto count = [&](const std::string& part) {
    const auto found = std::ranges::find(parts, part, &std::pair<std::string, int>::first);
    if (found == parts.end()) {
      parts.emplace_back(part, 1);
    } else {
      ++found->second;
    }
  };
  const auto describe = [](const auto& part) { return part.describe(); };
  for (const auto& layer : plan.layers) {
    count(std::visit(describe, layer.mixer));
    count(std::visit(describe, layer.ffn));
  }
  row("layers", fmt::format("{} of width {}", plan.layers.size(), plan.hidden));
  for (const auto& [part, layers] : parts) row("", fmt::format("{} x {}", layers, part));
}

void print_model(const Checkpoint& checkpoint, const ModelDescription& model) {
  const DecoderPlan& plan = model.plan;
  fmt::print("{}\n", checkpoint.path().filename().string());
  row("family", plan.family);
  row("parameters", format_count(model.parameters));
  row("file", fmt::format("{}, {}", format_bytes(model.file_bytes), model.container));
  std::string types;
  for (const auto& [type, bytes] : model.bytes_by_type) {
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", type, format_bytes(bytes));
  }
  row("stored as", types);
  if (!model.quantization.empty()) row("quantised", model.quantization);
  row("computes in", std::string(name_of(model.dtype)));
  print_layers(plan);
  row("vocabulary",
      fmt::format("{}{}", plan.vocab, plan.tied_embeddings ? ", tied embeddings" : ""));
  row("context", fmt::format("{} tokens", plan.max_context));
}

void print_cache(const ModelDescription& model, const EngineOptions& options) {
  const CachePlan cache = plan_engine_cache(model, options);
  row("KV per token", format_bytes(static_cast<uint64_t>(cache.bytes_per_token())));
  if (!cache.groups.empty()) {
    row("KV page",
        fmt::format("{} tokens, {} in each of {} buffers, {} group{}",
                    cache.groups.front().block_tokens, format_bytes(cache.page_bytes), cache.slots,
                    cache.groups.size(), cache.groups.size() == 1 ? "" : "s"));
  }
  if (cache.state) {
    row("state", fmt::format("{} per sequence, in {} pages", format_bytes(cache.bytes_per_state()),
                             cache.state_pages()));
  }
}

void print_cpu() {
  std::vector<std::string_view> names;
  for (cpu::Isa isa : cpu::available_isas()) names.push_back(name_of(isa));
  const int threads = compute_pool().threads();
  fmt::print("cpu: {} (of {}), {} thread{}\n", name_of(cpu::active_isa()), fmt::join(names, ", "),
             threads, threads == 1 ? "" : "s");
}

void run(const ModelFlags& flags) {
  const EngineOptions options = flags.engine_options();
  const Checkpoint checkpoint = Checkpoint::open(flags.model);
  const ModelDescription model = describe_model(checkpoint, options.dtype);
  print_model(checkpoint, model);
  print_cache(model, options);
  print_cpu();
  fmt::print("Memory plan on this machine for up to {} sequences at once\n{}", options.max_num_seqs,
             plan_engine_memory(model, options).table());
}

}  // namespace

void add_info_command(CLI::App& app) {
  auto flags = std::make_shared<ModelFlags>();
  CLI::App* command = app.add_subcommand(
      "info", "Show what a model is and the memory plan for this machine, without loading it");
  flags->add_to(*command);
  flags->add_batch_flags_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo

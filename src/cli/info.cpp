// octavo info - describes a checkpoint and its memory plan without loading it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "engine/pipeline/plan_stages.h"
#include "engine/plan_encoder.h"
#include "engine/plan_engine.h"
#include "generation/model_text.h"
#include "kernels/cpu/isa.h"
#include "kernels/runtime/device.h"
#include "llm/load_model_text.h"
#include "models/format/printable.h"
#include "models/tensor_check.h"

namespace octavo {
namespace {

using InfoJson = nlohmann::ordered_json;

struct InfoFlags : ModelFlags {
  bool json = false;
  int machines = 1;
};

void row(const char* name, const std::string& value) { fmt::print("  {:<22}{}\n", name, value); }

// Prints each distinct layer part once, with the number of layers that have it.
void print_layers(const DecoderPlan& plan) {
  std::vector<std::pair<std::string, int>> parts;
  const auto count = [&](const std::string& part) {
    if (part.empty()) return;  // a layer with only one of the two parts
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

const char* container_of(const Checkpoint& checkpoint) {
  return checkpoint.gguf() != nullptr ? "GGUF" : "safetensors";
}

std::map<std::string_view, uint64_t> bytes_by_type(const Checkpoint& checkpoint) {
  std::map<std::string_view, uint64_t> bytes;
  for (const TensorView& tensor : checkpoint.tensors())
    bytes[tensor_type_name(tensor.type)] += tensor.bytes.size();
  return bytes;
}

// As the file names it, whether or not it is supported.
std::string model_type_of(const Checkpoint& checkpoint) {
  const Gguf* gguf = checkpoint.gguf();
  if (gguf == nullptr) return read_config(checkpoint).text_or("model_type", "unknown");
  return printable(gguf->find_string("general.architecture").value_or("unknown"));
}

// Prints the facts that are known for any checkpoint, supported or not.
void print_files(const Checkpoint& checkpoint) {
  fmt::print("{}\n", checkpoint.path().filename().string());
  row("file", fmt::format("{}, {}, {} tensors", format_bytes(checkpoint.file_bytes()),
                          container_of(checkpoint), checkpoint.tensors().size()));
  std::string types;
  for (const auto& [type, bytes] : bytes_by_type(checkpoint))
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", type, format_bytes(bytes));
  row("stored as", types);
  row("model_type", model_type_of(checkpoint));
}

// Throws SetupError if the model is not supported.
ModelDescription supported_model(const Checkpoint& checkpoint, const EngineOptions& options) {
  ModelDescription model = describe_model(checkpoint, options);
  check_tensors(checkpoint, model);
  load_model_text(checkpoint);
  return model;
}

// Prints whether the model is supported. The rethrown error says why it is not.
ModelDescription check_support(const Checkpoint& checkpoint, const EngineOptions& options) {
  try {
    ModelDescription model = supported_model(checkpoint, options);
    row("supported", "yes");
    return model;
  } catch (const SetupError&) {
    row("supported", "no");
    std::fflush(stdout);
    throw;
  }
}

void print_model(const ModelDescription& model) {
  const DecoderPlan& plan = model.plan;
  row("family", plan.family);
  row("parameters", format_count(model.parameters));
  if (model.pooling)
    row(model.pooling->labels > 0 ? "scores" : "embeds", model.pooling->describe());
  if (!model.quantization.empty()) row("quantised", model.quantization);
  row("computes in", std::string(name_of(model.dtype)));
  print_layers(plan);
  row("vocabulary",
      fmt::format("{}{}", plan.vocab, plan.tied_embeddings ? ", tied embeddings" : ""));
  row("context", fmt::format("{} tokens", plan.max_context));
}

void print_vision(const ModelDescription& model) {
  if (!model.vision) {
    row("images", fmt::format("none: {}", printable(model.vision_absent)));
    return;
  }
  const VisionPlan& vision = *model.vision;
  row("images", vision.describe());
  row("", fmt::format("{} parameters, {} in memory", format_count(vision.parameters),
                      format_bytes(vision.weights_bytes)));
}

// Packed weights have padding, and whole codes where a file of IQ2 or IQ3 has indices of combinations.
void print_weights(const Checkpoint& checkpoint, const ModelDescription& model) {
  double stored = 0;
  for (const TensorView& tensor : checkpoint.tensors())
    stored += static_cast<double>(tensor.bytes.size());
  const uint64_t packed = model.weights_bytes + (model.vision ? model.vision->weights_bytes : 0);
  const double change = 100 * (static_cast<double>(packed) / stored - 1);
  row("in memory", fmt::format("{}, {:.1f}% {} than in the file", format_bytes(packed),
                               std::abs(change), change < 0 ? "less" : "more"));
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

void print_device(const DeviceFacts& device, DType dtype) {
  if (device.kind == DeviceKind::kMetal) {
    fmt::print("metal: {}\n", describe(device));
    if (const auto advice = dtype_advice(device, dtype)) fmt::print("advice: {}\n", *advice);
  }
  print_cpu();
  fmt::print("bits: {}\n", invariance_note(device.kind));
}

InfoJson json_of(const MemoryPlan& plan) {
  return {{"max_model_len", plan.max_model_len}, {"device_bytes", plan.device_bytes},
          {"budget_bytes", plan.budget_bytes},   {"weights_bytes", plan.weights_bytes},
          {"kv_bytes", plan.kv_bytes},           {"step_bytes", plan.step_bytes},
          {"reserve_bytes", plan.reserve_bytes}};
}

InfoJson json_of(const PipelinePlan& plan) {
  InfoJson stages = InfoJson::array();
  for (const StagePlan& stage : plan.stages)
    stages.push_back({{"first_layer", stage.layers.first},
                      {"layers", stage.layers.layers()},
                      {"memory", json_of(stage.memory)}});
  return stages;
}

// For the memory plan.
EngineOptions planned_options(const ModelDescription& model, const EngineOptions& options,
                              int machines) {
  if (machines > 1 && model.plan.encoder)
    throw SetupError(
        "--pipeline-parallel-size: an encoder runs on one machine; leave the flag out");
  return options_for(model, options);
}

void describe_in(InfoJson& out, const ModelDescription& model, const EngineOptions& asked,
                 int machines) {
  const EngineOptions options = planned_options(model, asked, machines);
  out["family"] = model.plan.family;
  out["parameters"] = model.parameters;
  out["quantization"] = model.quantization;
  out["dtype"] = name_of(model.dtype);
  out["embeds"] = model.pooling && model.pooling->labels == 0;
  out["scores"] = model.pooling ? model.pooling->labels : 0;
  if (model.vision) {
    out["vision"] = {{"tower", model.vision->describe()},
                     {"parameters", model.vision->parameters},
                     {"weights_bytes", model.vision->weights_bytes},
                     {"sees_block", model.vision->sees_block}};
  } else {
    out["vision"] = nullptr;
    out["vision_absent"] = model.vision_absent;
  }
  out["layers"] = model.plan.layers.size();
  out["hidden"] = model.plan.hidden;
  out["vocabulary"] = model.plan.vocab;
  out["context"] = model.plan.max_context;
  out["kv_bytes_per_token"] = plan_engine_cache(model, options).bytes_per_token();
  if (machines > 1) {
    out["stages"] = json_of(plan_equal_stages(model, options, machines));
  } else {
    out["memory"] = json_of(plan_engine_memory(model, options));
  }
}

// One JSON object. If the model is not supported, the object has the reason, which is also thrown.
void print_info_json(const Checkpoint& checkpoint, const EngineOptions& options, int machines) {
  InfoJson out = {
      {"path", checkpoint.path().string()},      {"file_bytes", checkpoint.file_bytes()},
      {"container", container_of(checkpoint)},   {"tensors", checkpoint.tensors().size()},
      {"model_type", model_type_of(checkpoint)}, {"supported", true}};
  for (const auto& [type, bytes] : bytes_by_type(checkpoint))
    out["stored_bytes"][std::string(type)] = bytes;
  const auto print = [&] {
    fmt::print("{}\n", out.dump(2, ' ', false, InfoJson::error_handler_t::replace));
    std::fflush(stdout);
  };
  try {
    const ModelDescription model = supported_model(checkpoint, options);
    describe_in(out, model, options, machines);
  } catch (const SetupError& error) {
    out["supported"] = false;
    out["error"] = error.what();
    print();
    throw;
  }
  print();
}

void run(InfoFlags flags) {
  flags.find();
  set_compute_options(flags.compute_options());
  EngineOptions asked = flags.engine_options();
  asked.serves_requests = true;
  asked.pooling.runner = RunnerKind::kAuto;
  use_device(asked.device);
  const Checkpoint checkpoint = Checkpoint::open(flags.model);
  if (flags.json) return print_info_json(checkpoint, asked, flags.machines);
  print_files(checkpoint);
  const ModelDescription model = check_support(checkpoint, asked);
  print_model(model);
  print_vision(model);
  print_weights(checkpoint, model);
  const EngineOptions options = planned_options(model, asked, flags.machines);
  print_cache(model, options);
  print_device(device_facts(), model.dtype);
  if (flags.machines > 1) {
    fmt::print("Memory plan on {} machines like this one for up to {} sequences at once\n{}",
               flags.machines, options.max_num_seqs,
               plan_equal_stages(model, options, flags.machines).table());
  } else {
    fmt::print("Memory plan on this machine for up to {} sequences at once\n{}",
               options.max_num_seqs, plan_engine_memory(model, options).table());
  }
}

}  // namespace

void add_info_command(CLI::App& app) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App* command = app.add_subcommand(
      "info",
      "Show a model's properties, whether it is supported, and its memory plan on this machine, "
      "without loading it");
  flags->add_to(*command);
  flags->add_batch_flags_to(*command);
  command->add_flag("--json", flags->json, "Print the properties as one JSON object");
  command
      ->add_option("--pipeline-parallel-size", flags->machines,
                   "Divide the model over this number of machines like this one, and show the part "
                   "of each")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo

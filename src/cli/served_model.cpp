#include "cli/served_model.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "cli/fingerprint.h"
#include "kernels/cpu/isa.h"
#include "kernels/device.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<std::string> names_of(const ServeFlags& flags) {
  if (!flags.served_model_name.empty()) return flags.served_model_name;
  if (!flags.model.name.empty()) return {flags.model.name};
  const fs::path path = fs::weakly_canonical(flags.model.model);
  const std::string name =
      path.extension() == ".gguf" ? path.stem().string() : path.filename().string();
  if (name == flags.model.model) return {name};
  return {name, flags.model.model};
}

server::SamplingDefaults defaults_of(const ServeFlags& flags) {
  server::SamplingDefaults defaults;
  const fs::path path = fs::path(flags.model.model) / "generation_config.json";
  if (flags.generation_config != "auto" || !fs::exists(path)) return defaults;
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object()) throw SetupError(path.string() + ": is no JSON object");
  const auto read = [&](const char* name, auto& value) {
    if (json.contains(name) && json.at(name).is_number()) value = json.at(name);
  };
  read("temperature", defaults.temperature);
  read("top_p", defaults.top_p);
  read("top_k", defaults.top_k);
  read("min_p", defaults.min_p);
  read("repetition_penalty", defaults.repetition_penalty);
  return defaults;
}

std::string fingerprint_of(const ServeFlags& flags, const Llm& llm) {
  const DeviceFacts device = device_facts();
  const std::string computes = device.kind == DeviceKind::kMetal
                                   ? device.architecture
                                   : std::string(cpu::name_of(cpu::active_isa()));
  std::string facts = fmt::format("{} {} {} {}\n", OCTAVO_VERSION, computes,
                                  name_of(llm.engine().model().dtype), flags.model.kv_cache_dtype);
  // Its files stand in folders of their own.
  if (const auto& pooling = llm.engine().model().pooling) facts += pooling->describe() + "\n";
  facts += sample_of_model(flags.model.model);
  const std::vector<uint8_t> bytes(facts.begin(), facts.end());
  const Sha256Digest digest = sha256(bytes);
  std::string text = "fp_";
  for (size_t i = 0; i < 6; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace

server::ServedModel make_served_model(Llm& llm, const ServeFlags& flags,
                                      const EngineOptions& options) {
  const MemoryPlan& plan = llm.engine().memory();
  const ModelDescription& model = llm.engine().model();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::vector<TokenId> stop_tokens(model.stop_token_ids.begin(), model.stop_token_ids.end());
  return {.engine = llm.engine(),
          .text = llm.text(),
          .grammars = std::make_shared<GrammarCompiler>(llm.text().tokenizer, model.plan.vocab,
                                                        stop_tokens),
          .dialect = choose_chat_dialect(llm.text(), stop_tokens, flags.dialect),
          .names = names_of(flags),
          .root = flags.model.model,
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .max_model_len = plan.max_model_len,
          .vocab = model.plan.vocab,
          .max_num_seqs = options.max_num_seqs,
          .block_tokens = options.block_tokens,
          .enable_prefix_caching = options.enable_prefix_caching,
          .fingerprint = fingerprint_of(flags, llm),
          .defaults = defaults_of(flags),
          .pooling = model.pooling,
          .hidden = model.plan.hidden,
          .memory = {{"device", plan.device_bytes},
                     {"budget", plan.budget_bytes},
                     {"weights", plan.weights_bytes},
                     {"pages", plan.kv_bytes},
                     {"step", plan.step_bytes},
                     {"reserve", plan.reserve_bytes}}};
}

}  // namespace octavo

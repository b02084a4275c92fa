#include "llm/make_served_model.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "llm/fingerprint.h"
#include "llm/make_image_reader.h"
#include "llm/model_facts.h"
#include "text/helper_jobs.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_of(const ModelSettings& settings, const ServingSettings& serving) {
  if (!serving.served_model_name.empty()) return serving.served_model_name;
  if (!settings.name.empty()) return {settings.name};
  const fs::path path = fs::weakly_canonical(settings.model);
  const std::string name =
      path.extension() == ".gguf" ? path.stem().string() : path.filename().string();
  return {name};
}

// A model without a given name also answers to the path it was loaded from. That path is not
// listed: it says where the files are.
std::vector<std::string> unlisted_names_of(const ModelSettings& settings,
                                           const ServingSettings& serving) {
  if (!serving.served_model_name.empty() || !settings.name.empty()) return {};
  return {settings.model};
}

api::SamplingDefaults defaults_of(const ModelSettings& settings, const ServingSettings& serving) {
  api::SamplingDefaults defaults;
  const fs::path path = fs::path(settings.model) / "generation_config.json";
  if (serving.generation_config != "auto") return defaults;  // OpenAI's
  if (!fs::exists(path)) return api::kOctavoSampling;
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) throw SetupError(path.string() + ": is not a JSON object");
  const auto read = [&]<typename T>(const char* name, std::optional<T>& value, double low,
                                    double high) {
    if (!json.contains(name) || !json.at(name).is_number()) return;
    const auto number = json.at(name).get<double>();
    if (!(number >= low && number <= high)) {
      throw SetupError(
          fmt::format("{}: \"{}\" is {}, outside {} to {}; correct it, or start with "
                      "--generation-config vllm",
                      path.string(), name, number, low, high));
    }
    value = static_cast<T>(number);
  };
  // The ranges of the request fields of these names; a top_k of -1 or 0 means all tokens.
  read("temperature", defaults.temperature, 0, 100);
  read("top_p", defaults.top_p, 0, 1);
  read("top_k", defaults.top_k, -1, 1 << 24);
  read("min_p", defaults.min_p, 0, 1);
  read("repetition_penalty", defaults.repetition_penalty, 0.01, 100);
  // Many files have only token ids.
  return defaults.empty() ? api::kOctavoSampling : defaults;
}

// The defaults if the plan has nothing for requests, as for the C API.
api::RequestMemory request_memory_of(const MemoryPlan& plan) {
  return plan.request_bytes > 0 ? api::divide_request_memory(plan.request_bytes)
                                : api::RequestMemory{};
}

// A template comes from the model's file, so servers render it in a limited process.
ModelText served_text(const ModelText& text, bool use_helpers) {
  ModelText served = text;
  if (use_helpers && text.chat_template)
    served.chat_template =
        text.chat_template->with_helpers(make_template_helpers(text.chat_template->source()));
  return served;
}

std::shared_ptr<GrammarCompiler> served_grammars(const ModelText& text,
                                                 const ModelDescription& model,
                                                 const std::vector<TokenId>& stop_tokens,
                                                 const api::RequestMemory& memory,
                                                 bool use_helpers) {
  const int vocab = model.plan.vocab;
  GrammarCacheOptions options{.max_open_bytes = memory.grammar_bytes};
  // At once: after an upgrade of the program's files it may be too late. A model that only embeds
  // needs none.
  if (use_helpers)
    options.helpers = make_grammar_helpers(text.tokenizer, vocab, stop_tokens, !model.pooling);
  return std::make_shared<GrammarCompiler>(text.tokenizer, vocab, stop_tokens, options);
}

// Loads the adapters of --lora-modules.
std::shared_ptr<api::AdapterRegistry> served_adapters(Llm& llm, const EngineOptions& options,
                                                      const api::ServedModel& served,
                                                      const ServingSettings& serving) {
  if (!options.adapters) return nullptr;
  std::vector<std::string> reserved = served.names;
  reserved.insert(reserved.end(), served.unlisted_names.begin(), served.unlisted_names.end());
  auto adapters = std::make_shared<api::AdapterRegistry>(
      [&engine = llm.engine()](const api::AdapterSource& source, bool replaces) {
        return engine.load_adapter(source.name, source.path, replaces);
      },
      std::move(reserved));
  for (const api::AdapterSource& source : serving.lora_modules) {
    try {
      adapters->load(source);
    } catch (const SetupError& error) {
      throw SetupError(fmt::format("--lora-modules {}: {}", source.name, error.what()));
    }
  }
  return adapters;
}

}  // namespace

api::ServedModel make_served_model(Llm& llm, const ModelSettings& settings,
                                   const EngineOptions& options, const ServingSettings& serving) {
  const MemoryPlan& plan = llm.engine().memory();
  const ModelDescription& model = llm.engine().model();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::vector<TokenId> stop_tokens(model.stop_token_ids.begin(), model.stop_token_ids.end());
  api::ServedModel served{
      .engine = llm.engine(),
      .text = served_text(llm.text(), serving.use_helpers),
      .grammars = served_grammars(llm.text(), model, stop_tokens, request_memory_of(plan),
                                  serving.use_helpers),
      .dialect = choose_chat_dialect(llm.text(), stop_tokens, serving.dialect),
      .names = names_of(settings, serving),
      .unlisted_names = unlisted_names_of(settings, serving),
      .root = settings.model,
      .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
      .max_model_len = plan.max_model_len,
      .vocab = model.plan.vocab,
      .max_num_seqs = options.max_num_seqs,
      .block_tokens = options.block_tokens,
      .enable_prefix_caching = options.enable_prefix_caching && !model.plan.encoder,
      .fingerprint = answer_fingerprint(settings, llm, serving.version),
      .defaults = defaults_of(settings, serving),
      .pooling = model.pooling,
      .score_head = llm.engine().score_head(),
      .max_whole_prompt = llm.engine().max_whole_prompt(),
      .hidden = model.plan.hidden,
      .memory = {{"device", plan.device_bytes},
                 {"budget", plan.budget_bytes},
                 {"weights", plan.weights_bytes},
                 {"pages", plan.kv_bytes},
                 {"step", plan.step_bytes},
                 {"requests", plan.request_bytes},
                 {"reserve", plan.reserve_bytes}},
      .facts = model_facts(llm),
      .request_memory = request_memory_of(plan)};
  served.adapters = served_adapters(llm, options, served, serving);
  if (served.adapters) served.memory.push_back({"adapters", plan.adapter_bytes});
  served.disk = llm.engine().disk_tier();
  served.images = make_image_reader(llm.engine(), {.memory = served.request_memory,
                                                   .max_images = settings.max_images(),
                                                   .fetcher = serving.media_fetcher});
  if (!served.images && !llm.engine().images_refused().empty())
    served.images_refused = llm.engine().images_refused();
  return served;
}

}  // namespace octavo

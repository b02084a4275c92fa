#include "api/ollama/ollama_models.h"

#include <fmt/format.h>

#include <span>

#include "api/fields/field_kinds.h"
#include "api/ollama/rfc3339.h"
#include "base/sha256.h"
#include "base/units.h"

namespace octavo::api {
namespace {

// Of the fingerprint, which stands for the model's files.
std::string digest_of(const ServedModel& model) {
  const std::string& text = model.fingerprint;
  std::string digest;
  for (const uint8_t byte :
       sha256(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())))
    digest += fmt::format("{:02x}", byte);
  return digest;
}

Json details_of(const ServedModel& model) {
  const ModelFacts& facts = model.facts;
  return {{"parent_model", ""},
          {"format", facts.container},
          {"family", facts.family},
          {"families", Json::array({facts.family})},
          {"parameter_size", format_count(facts.parameters)},
          {"quantization_level", facts.quantization}};
}

uint64_t memory_row(const ServedModel& model, std::string_view name) {
  for (const MemoryRow& row : model.memory)
    if (row.name == name) return row.bytes;
  return 0;
}

Json capabilities_of(const ServedModel& model) {
  if (model.score_head) return Json::array();
  if (model.pooling) return Json::array({"embedding"});
  Json capabilities = Json::array({"completion"});
  if (model.images && model.text.chat_template) capabilities.push_back("vision");
  const Dialect& dialect = model.dialect.dialect;
  if (dialect.tools != nullptr && model.text.chat_template) capabilities.push_back("tools");
  if (dialect.reasoning != nullptr || dialect.channels != nullptr)
    capabilities.push_back("thinking");
  return capabilities;
}

// A Modelfile's parameters, one per line.
std::string parameters_of(const ServedModel& model) {
  std::string text = fmt::format("{:30} {}", "num_ctx", model.max_model_len);
  const auto add = [&](const char* name, const auto& value) {
    if (value) text += fmt::format("\n{:30} {}", name, *value);
  };
  add("temperature", model.defaults.temperature);
  add("top_p", model.defaults.top_p);
  add("top_k", model.defaults.top_k);
  add("min_p", model.defaults.min_p);
  add("repeat_penalty", model.defaults.repetition_penalty);
  return text;
}

FieldTable<OllamaModelRequest> name_fields() {
  const auto read = [](const char* field) {
    return [field](const Json& v, OllamaModelRequest& t) {
      t.model = to_string(v, field, kMaxNameBytes);
    };
  };
  return {used<OllamaModelRequest>("model", string_schema(kMaxNameBytes),
                                   "A model listed by /api/tags", read("model")),
          used<OllamaModelRequest>("name", string_schema(kMaxNameBytes), "Earlier name of model",
                                   read("name"))};
}

FieldTable<OllamaModelRequest> names_and_hints(std::initializer_list<const char*> names) {
  FieldTable<OllamaModelRequest> fields = name_fields();
  for (auto& hint : hints<OllamaModelRequest>(names)) fields.push_back(hint);
  return fields;
}

}  // namespace

Json ollama_tags(const ServedModel& model) {
  Json models = Json::array();
  for (const std::string& name : model.names)
    models.push_back({{"name", name},
                      {"model", name},
                      {"modified_at", rfc3339(model.created)},
                      {"size", model.facts.file_bytes},
                      {"digest", digest_of(model)},
                      {"details", details_of(model)}});
  return {{"models", std::move(models)}};
}

Json ollama_ps(const ServedModel& model) {
  const uint64_t bytes = memory_row(model, "weights") + memory_row(model, "pages") +
                         memory_row(model, "step") + memory_row(model, "requests");
  return {{"models", Json::array({{{"name", model.name()},
                                   {"model", model.name()},
                                   {"size", bytes},
                                   {"digest", digest_of(model)},
                                   {"details", details_of(model)},
                                   {"expires_at", kNeverExpires},
                                   {"size_vram", model.facts.on_gpu ? bytes : 0},
                                   {"context_length", model.max_model_len}}})}};
}

Json ollama_show(const ServedModel& model) {
  const std::string& family = model.facts.family;
  Json info = {{"general.architecture", family},
               {"general.basename", model.name()},
               {"general.parameter_count", model.facts.parameters},
               {family + ".context_length", model.max_model_len},
               {family + ".embedding_length", model.hidden},
               {family + ".vocab_size", model.vocab}};
  Json show = {{"parameters", parameters_of(model)},
               {"details", details_of(model)},
               {"model_info", std::move(info)},
               {"capabilities", capabilities_of(model)},
               {"modified_at", rfc3339(model.created)}};
  if (model.text.chat_template) show["template"] = model.text.chat_template->source().source;
  return show;
}

const FieldTable<OllamaModelRequest>& ollama_show_fields() {
  static const FieldTable<OllamaModelRequest> table =
      names_and_hints({"verbose", "system", "template", "options"});
  return table;
}

const FieldTable<OllamaModelRequest>& ollama_pull_fields() {
  static const FieldTable<OllamaModelRequest> table =
      names_and_hints({"stream", "insecure", "username", "password"});
  return table;
}

}  // namespace octavo::api

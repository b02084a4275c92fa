#include "api/ollama/ollama_embed.h"

#include <fmt/format.h>

#include <utility>

#include "api/fields/request_fields.h"
#include "api/ollama/keep_alive.h"
#include "api/ollama/ollama_options.h"
#include "api/openai/embedding_format.h"

namespace octavo::api {
namespace {

using EmbedFields = FieldTable<OllamaEmbedRequest>;

// Sampling options have no effect on embeddings.
void read_embed_options(const Json& value, OllamaEmbedRequest& request) {
  read_ollama_options(value, request.shared);
  for (const auto& [name, option] : value.items()) {
    if (!option.is_null() && name != "num_ctx") request.shared.ignore("options", name);
  }
}

void read_texts(const Json& value, OllamaEmbedRequest& request) {
  if (value == "" || value == Json::array()) return;
  const auto is_text = [](const Json& text) { return text.is_string(); };
  if (!value.is_string() && !(value.is_array() && std::ranges::all_of(value, is_text)))
    refuse("input", "must be a string or a list of strings");
  request.body["input"] = value;
}

EmbedFields shared_embed_fields() {
  using Request = OllamaEmbedRequest;
  EmbedFields fields = {
      used<Request>(
          "model", string_schema(kMaxNameBytes), "A model listed by /api/tags",
          [](const Json& v, Request& t) { t.shared.model = to_string(v, "model", kMaxNameBytes); }),
      used<Request>("options", schema_of(ollama_options()),
                    "Only num_ctx has an effect on embeddings", read_embed_options),
      used<Request>("keep_alive", keep_alive_schema(),
                    "How long the model stays loaded. A server of one model never unloads it",
                    [](const Json& v, Request& t) {
                      read_keep_alive(v);
                      t.shared.ignored.emplace_back("keep_alive");
                    }),
  };
  for (const Field<EmbeddingRequest>& field : request_fields<EmbeddingRequest>())
    fields.push_back(
        used<Request>(field.name, field.schema, field.about,
                      [name = field.name](const Json& v, Request& t) { t.body[name] = v; }));
  return fields;
}

EmbedFields with_shared(EmbedFields own) {
  const EmbedFields shared = shared_embed_fields();
  own.insert(own.end(), shared.begin(), shared.end());
  return own;
}

OllamaEmbedJob prepare_vectors(const Json& body, const EmbedFields& table, bool single,
                               const ServedModel& model, const Preparation& preparation) {
  OllamaEmbedRequest request;
  IgnoredFields ignored = read_fields(body, table, request);
  check_model_name(request.shared.model, model);
  settle_ollama_options(request.shared, model);
  OllamaEmbedJob job;
  if (request.body.contains("input")) {
    if (request.truncates) request.body["truncate_prompt_tokens"] = -1;
    // Ollama normalizes the vectors of /api/embed only, whatever the model's files say.
    request.body["use_activation"] = !single;
    try {
      static_cast<EmbeddingJob&>(job) =
          prepare_embedding(request.body, with_context(model, request.shared.num_ctx), preparation);
    } catch (const RequestError& error) {
      if (!single) throw;
      rethrow_named(error, {{"input", "prompt"}});
    }
  } else {
    job.loads = true;
  }
  job.ignored.insert(job.ignored.end(), request.shared.ignored.begin(),
                     request.shared.ignored.end());
  job.ignored.insert(job.ignored.end(), ignored.begin(), ignored.end());
  job.model = request.shared.model.empty() ? model.name() : request.shared.model;
  job.single = single;
  return job;
}

Json vector_schema() { return {{"type", "array"}, {"items", {{"type", "number"}}}}; }

}  // namespace

const FieldTable<OllamaEmbedRequest>& ollama_embed_fields() {
  using Request = OllamaEmbedRequest;
  const Json text = string_schema(kMaxTextBytes);
  static const EmbedFields table = with_shared({
      used<Request>("input", {{"anyOf", {text, {{"type", "array"}, {"items", text}}}}},
                    "A string or a list of strings. Empty or missing: only checks that the model "
                    "is loaded",
                    read_texts),
      used<Request>(
          "truncate", boolean_schema(),
          "Keep as many tokens as fit the context, from the beginning; on by default. false: "
          "longer texts are refused",
          [](const Json& v, Request& t) { t.truncates = to_bool(v, "truncate"); }),
      used<Request>("dimensions", integer_schema(0, kMaxInt),
                    "Truncate vectors to this many dimensions, if the model supports it; 0: do not",
                    [](const Json& v, Request& t) {
                      const int count = to_int(v, "dimensions", 0, kMaxInt);
                      if (count > 0) t.body["dimensions"] = count;
                    }),
  });
  return table;
}

const FieldTable<OllamaEmbedRequest>& ollama_embeddings_fields() {
  using Request = OllamaEmbedRequest;
  static const EmbedFields table = with_shared({
      used<Request>("prompt", string_schema(kMaxTextBytes),
                    "The text. Empty or missing: only checks that the model is loaded",
                    [](const Json& v, Request& t) {
                      const std::string text = to_string(v, "prompt", kMaxTextBytes);
                      if (!text.empty()) t.body["input"] = text;
                    }),
  });
  return table;
}

OllamaEmbedJob prepare_ollama_embed(const Json& body, const ServedModel& model,
                                    const Preparation& preparation) {
  return prepare_vectors(body, ollama_embed_fields(), false, model, preparation);
}

OllamaEmbedJob prepare_ollama_embeddings(const Json& body, const ServedModel& model,
                                         const Preparation& preparation) {
  return prepare_vectors(body, ollama_embeddings_fields(), true, model, preparation);
}

std::string OllamaEmbedFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  std::string vectors;
  for (const OutputEvent& answer : answers) {
    std::vector<float> vector = answer.embedding;
    finish_embedding(vector, job_.form);
    if (!vectors.empty()) vectors += ',';
    append_embedding(vectors, vector, false);
  }
  if (job_.single) return fmt::format(R"({{"embedding":{}}})", job_.loads ? "[]" : vectors);
  std::string out =
      fmt::format(R"({{"model":{},"embeddings":[{}])", json_string(job_.model), vectors);
  const auto took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - arrival_).count();
  if (!job_.loads)
    out += fmt::format(R"(,"total_duration":{},"load_duration":0,"prompt_eval_count":{})", took,
                       usage.prompt_tokens);
  return out + "}";
}

Json ollama_embed_schema() {
  return {{"type", "object"},
          {"properties",
           {{"model", {{"type", "string"}}},
            {"embeddings", {{"type", "array"}, {"items", vector_schema()}}},
            {"total_duration", {{"type", "integer"}}},
            {"load_duration", {{"type", "integer"}}},
            {"prompt_eval_count", {{"type", "integer"}}}}},
          {"required", {"model", "embeddings"}}};
}

Json ollama_embeddings_schema() {
  return {{"type", "object"},
          {"properties", {{"embedding", vector_schema()}}},
          {"required", Json::array({"embedding"})}};
}

}  // namespace octavo::api

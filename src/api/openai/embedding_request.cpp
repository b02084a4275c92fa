#include "api/openai/embedding_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/fields/field_kinds.h"
#include "api/fields/request_fields.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxInputs = 2048;  // OpenAI's limit

FieldTable<EmbeddingRequest> vector_fields() {
  return {
      used<EmbeddingRequest>("model", string_schema(kMaxNameBytes), "A model listed by /v1/models",
                             [](const Json& v, EmbeddingRequest& t) {
                               t.model = to_string(v, "model", kMaxNameBytes);
                             }),
      {.name = "input",
       .use = FieldUse::kUsed,
       .schema = prompt_list_schema(kMaxInputs),
       .about = "A string, a list of strings, a list of token ids, or a list of such lists",
       .read = [](const Json& v,
                  EmbeddingRequest& t) { t.input = to_prompts(v, "input", kMaxInputs); },
       .required = true},
      used<EmbeddingRequest>(
          "encoding_format", one_of_schema({"float", "base64"}),
          "float: a list of numbers; base64: little-endian 32-bit floats in base64",
          [](const Json& v, EmbeddingRequest& t) {
            t.base64 = to_choice(v, "encoding_format", "float", "base64");
          }),
      used<EmbeddingRequest>("dimensions", integer_schema(1, kMaxInt),
                             "Truncate vectors to this many dimensions, if the model supports it",
                             [](const Json& v, EmbeddingRequest& t) {
                               t.dimensions = to_int(v, "dimensions", 1, kMaxInt);
                             }),
      used<EmbeddingRequest>("use_activation", boolean_schema(),
                             "Normalize vectors to length 1; default: as the model's files say",
                             [](const Json& v, EmbeddingRequest& t) {
                               t.use_activation = to_bool(v, "use_activation");
                             }),
  };
}

FieldTable<EmbeddingRequest> text_fields() {
  FieldTable<EmbeddingRequest> fields;
  add_fields(fields, truncation_fields(),
             [](EmbeddingRequest& t) -> Truncation& { return t.truncation; });
  fields.push_back(used<EmbeddingRequest>("add_special_tokens", boolean_schema(),
                                          "Add the tokenizer's special tokens; on by default",
                                          [](const Json& v, EmbeddingRequest& t) {
                                            t.add_special_tokens = to_bool(v, "add_special_tokens");
                                          }));
  return fields;
}

FieldTable<EmbeddingRequest> refused_fields() {
  return {
      refused<EmbeddingRequest>("messages", "is not supported; send the text as input"),
      refused<EmbeddingRequest>("normalize", "is vLLM's former name; use use_activation"),
      refused<EmbeddingRequest>("embed_dtype", "only float32 is supported",
                                [](const Json& v) { return v == "float32"; }),
      refused<EmbeddingRequest>("endianness", "only little is supported",
                                [](const Json& v) { return v == "native" || v == "little"; }),
      refused<EmbeddingRequest>("padding", "texts are not padded",
                                [](const Json& v) { return v == "do_not_pad"; }),
      refused<EmbeddingRequest>("mm_processor_kwargs", "only text is supported"),
  };
}

// The number of dimensions to keep. Truncation is refused unless the model was trained for it.
int dimensions_of(const EmbeddingRequest& request, const ServedModel& model) {
  const PoolingPlan& plan = *model.pooling;
  if (!request.dimensions || *request.dimensions == model.hidden)
    return request.dimensions.value_or(plan.dimensions.value_or(0));
  const int asked = *request.dimensions;
  const auto& allowed = plan.matryoshka_dimensions;
  if (asked > model.hidden)
    refuse("dimensions",
           fmt::format("is {}; this model's vectors have {} dimensions", asked, model.hidden));
  if (!plan.matryoshka)
    refuse("dimensions",
           "this model's config does not declare Matryoshka embeddings; if it supports them, start "
           R"(the server with --hf-overrides '{"is_matryoshka": true}')");
  if (!allowed.empty() && std::ranges::count(allowed, asked) == 0)
    refuse("dimensions",
           fmt::format("is {}; this model supports {}", asked, fmt::join(allowed, ", ")));
  return asked;
}

void cut(std::vector<TokenId>& tokens, size_t keep, bool keep_end) {
  if (tokens.size() <= keep) return;
  if (keep_end) tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(keep));
  tokens.resize(keep);
}

}  // namespace

const FieldTable<EmbeddingRequest>& embedding_fields() {
  static const FieldTable<EmbeddingRequest> table = [] {
    FieldTable<EmbeddingRequest> all = vector_fields();
    for (const auto& part : {text_fields(), request_fields<EmbeddingRequest>(), refused_fields(),
                             hints<EmbeddingRequest>({"keep_alive", "user", "metadata", "store",
                                                      "service_tier", "timeout"})})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

EmbeddingJob prepare_embedding(const Json& body, const ServedModel& model,
                               const Preparation& preparation) {
  if (!model.pooling)
    refuse("model",
           "this server generates text; start it with --runner pooling to serve embeddings");
  if (model.score_head)
    refuse(
        "model",
        "this server runs a model that scores texts; use /v1/rerank or /v1/score, or start it with "
        "an embedding model");
  EmbeddingRequest request;
  IgnoredFields ignored = read_fields(body, embedding_fields(), request);
  EmbeddingJob job;
  job.engine = request.engine;
  job.engine.adapter = adapter_named(request.model, model);
  job.engine.pooling = model.pooling->kind;
  job.id = request.request_id;
  job.ignored = std::move(ignored);
  job.base64 = request.base64;
  job.form = {.dimensions = dimensions_of(request, model),
              .normalize = request.use_activation.value_or(model.pooling->normalize)};
  job.prompts_field = "input";
  const std::optional<size_t> keep = request.truncation.keep(model);
  const int limit = model.longest_pooled();
  const Tokenizer& tokenizer = *model.text.tokenizer;
  for (const std::string& text : request.input.texts) {
    preparation.check();
    if (keep) {
      check_countable(text, model, "input");
    } else {
      check_length(text, limit, model, "input");
    }
    std::vector<TokenId> tokens = tokenizer.encode(text, request.add_special_tokens);
    if (keep && tokens.size() > *keep)
      tokens = without_excess(std::move(tokens), tokenizer.encode(text, false), *keep,
                              request.truncation.keep_end);
    add_prompt(job, {.tokens = std::move(tokens)}, model, "input");
  }
  for (std::vector<TokenId>& tokens : request.input.tokens) {
    if (keep) cut(tokens, *keep, request.truncation.keep_end);
    add_prompt(job, {.tokens = std::move(tokens)}, model, "input");
  }
  return job;
}

}  // namespace octavo::api

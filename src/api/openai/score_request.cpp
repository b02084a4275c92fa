#include "api/openai/score_request.h"

#include <fmt/format.h>

#include <utility>

#include "api/fields/request_fields.h"

namespace octavo::api {
namespace {

bool is_zero(const Json& value) { return value == 0; }
bool is_text_alone(const Json& value) {
  return asks_nothing(value) || value == Json::array({"text"});
}
bool is_disabled(const Json& value) {
  return value.is_null() || (value.is_object() && value.value("mode", Json()) == "disabled");
}

FieldTable<ScoringRequest> used_scoring_fields() {
  FieldTable<ScoringRequest> fields = {
      used<ScoringRequest>(
          "model", string_schema(kMaxNameBytes), "A model listed by /v1/models",
          [](const Json& v, ScoringRequest& t) { t.model = to_string(v, "model", kMaxNameBytes); }),
      used<ScoringRequest>(
          "use_activation", boolean_schema(),
          "Apply the sigmoid to the logit of a cross-encoder; default: as the model's files say, "
          "otherwise on. No effect on the cosine of embeddings",
          [](const Json& v, ScoringRequest& t) {
            t.use_activation = to_bool(v, "use_activation");
          }),
      used<ScoringRequest>("max_tokens_per_doc", integer_schema(0, kMaxInt),
                           "Truncate longer documents to this many tokens; 0: do not",
                           [](const Json& v, ScoringRequest& t) {
                             t.pairs.max_tokens_per_doc =
                                 to_int(v, "max_tokens_per_doc", 0, kMaxInt);
                           }),
      used<ScoringRequest>("instruction", string_schema(kMaxTextBytes),
                           "What makes a document relevant, for models that take an instruction "
                           "(Qwen3-Reranker)",
                           [](const Json& v, ScoringRequest& t) {
                             t.pairs.instruction = to_string(v, "instruction", kMaxTextBytes);
                           }),
  };
  add_fields(fields, truncation_fields(),
             [](ScoringRequest& t) -> Truncation& { return t.pairs.truncation; });
  return fields;
}

FieldTable<ScoringRequest> refused_scoring_fields() {
  return {
      refused<ScoringRequest>("max_tokens_per_query", "is not supported; send a shorter query",
                              is_zero),
      refused<ScoringRequest>("activation", "is vLLM's former name; use use_activation"),
      refused<ScoringRequest>("softmax", "is vLLM's former name; use use_activation"),
      refused<ScoringRequest>("chat_template", "is not supported; use instruction"),
      refused<ScoringRequest>("chat_template_kwargs", "is not supported; use instruction"),
      refused<ScoringRequest>("add_special_tokens", "texts are joined with special tokens",
                              [](const Json& v) { return v == true; }),
      refused<ScoringRequest>("padding", "texts are not padded",
                              [](const Json& v) { return v == "do_not_pad"; }),
      refused<ScoringRequest>("mm_processor_kwargs", "only text is supported"),
  };
}

const FieldTable<ScoringRequest>& scoring_fields() {
  static const FieldTable<ScoringRequest> table = [] {
    FieldTable<ScoringRequest> all = used_scoring_fields();
    for (const auto& part : {request_fields<ScoringRequest>(), refused_scoring_fields(),
                             hints<ScoringRequest>({"keep_alive", "user", "metadata", "store",
                                                    "service_tier", "timeout"})})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

template <typename Target>
FieldTable<Target> with_scoring_fields(FieldTable<Target> own) {
  add_fields(own, scoring_fields(), [](Target& t) -> ScoringRequest& { return t.shared; });
  return own;
}

FieldTable<RerankRequest> own_rerank_fields() {
  return {
      {.name = "query",
       .use = FieldUse::kUsed,
       .schema = texts_schema(1),
       .about = "A string, or an object with a text",
       .read = [](const Json& v, RerankRequest& t) { t.query = to_texts(v, "query", 1); },
       .required = true},
      {.name = "documents",
       .use = FieldUse::kUsed,
       .schema = texts_schema(kMostScored),
       .about = "A list of strings, or of objects with a text",
       .read = [](const Json& v,
                  RerankRequest& t) { t.documents = to_texts(v, "documents", kMostScored); },
       .required = true},
      used<RerankRequest>(
          "top_n", integer_schema(0, kMaxInt),
          "Return only this many documents, the most relevant; 0: all",
          [](const Json& v, RerankRequest& t) { t.top_n = to_int(v, "top_n", 0, kMaxInt); }),
      used<RerankRequest>("return_documents", boolean_schema(),
                          "Return the documents' texts; on by default",
                          [](const Json& v, RerankRequest& t) {
                            t.return_documents = to_bool(v, "return_documents");
                          }),
      refused<RerankRequest>("rank_fields", "is not supported; send each document as one text",
                             is_text_alone),
      refused<RerankRequest>("max_chunks_per_doc",
                             "documents are not divided; use max_tokens_per_doc"),
      refused<RerankRequest>("return_embeddings", "is not supported; use /v1/embeddings",
                             asks_false),
      refused<RerankRequest>("relevant_spans", "is not supported", is_disabled),
  };
}

// One of the names of the same list of texts.
Field<ScoreRequest> score_texts(const char* name, const char* about,
                                NamedTexts ScoreRequest::*part) {
  return used<ScoreRequest>(name, texts_schema(kMostScored), about,
                            [name = std::string(name), part](const Json& v, ScoreRequest& t) {
                              NamedTexts& texts = t.*part;
                              if (!texts.field.empty())
                                refuse(name, "cannot be combined with " + texts.field);
                              texts = to_texts(v, name, kMostScored);
                            });
}

template <typename Target>
Target read_scoring(const Json& body, const FieldTable<Target>& fields, const ServedModel& model,
                    ScoringJob& job) {
  require_scores(model);
  Target request;
  job.ignored = read_fields(body, fields, request);
  return request;
}

// What both kinds of request become, without prompts.
void prepare_scoring(ScoringJob& job, const ScoringRequest& request, const ServedModel& model) {
  job.engine = request.engine;
  job.engine.adapter = adapter_named(request.model, model);
  job.engine.pooling = model.pooling->kind;
  job.id = request.request_id;
  job.head = model.score_head;
  job.sigmoid = request.use_activation.value_or(model.pooling->normalize);
}

}  // namespace

const FieldTable<RerankRequest>& rerank_fields() {
  static const FieldTable<RerankRequest> table = with_scoring_fields(own_rerank_fields());
  return table;
}

const FieldTable<ScoreRequest>& score_fields() {
  constexpr const char* kFirst =
      "The queries: a text, or as many as the documents. Required, by one "
      "of its names";
  constexpr const char* kSecond = "The documents: a text or a list. Required, by one of its names";
  static const FieldTable<ScoreRequest> table = with_scoring_fields(FieldTable<ScoreRequest>{
      score_texts("text_1", kFirst, &ScoreRequest::first),
      score_texts("text_2", kSecond, &ScoreRequest::second),
      score_texts("queries", kFirst, &ScoreRequest::first),
      score_texts("documents", kSecond, &ScoreRequest::second),
      score_texts("items", kSecond, &ScoreRequest::second),
      score_texts("data_1", kFirst, &ScoreRequest::first),
      score_texts("data_2", kSecond, &ScoreRequest::second),
      refused<ScoreRequest>("label_token_ids", "is not supported; use a reranker"),
  });
  return table;
}

RerankJob prepare_rerank(const Json& body, const ServedModel& model,
                         const Preparation& preparation) {
  RerankJob job;
  RerankRequest request = read_scoring(body, rerank_fields(), model, job);
  prepare_scoring(job, request.shared, model);
  job.prompts_field = "documents";
  const size_t count = request.documents.texts.size();
  job.top_n = request.top_n == 0 ? count : std::min(count, static_cast<size_t>(request.top_n));
  add_pairs(job, request.query, request.documents, request.shared.pairs, model, preparation);
  if (request.return_documents) job.documents = std::move(request.documents.texts);
  return job;
}

ScoringJob prepare_score(const Json& body, const ServedModel& model,
                         const Preparation& preparation) {
  ScoringJob job;
  const ScoreRequest request = read_scoring(body, score_fields(), model, job);
  if (request.first.field.empty()) refuse("text_1", "is missing");
  if (request.second.field.empty()) refuse("text_2", "is missing");
  prepare_scoring(job, request.shared, model);
  job.prompts_field = request.second.field;
  add_pairs(job, request.first, request.second, request.shared.pairs, model, preparation);
  return job;
}

}  // namespace octavo::api

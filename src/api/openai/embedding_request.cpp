#include "api/openai/embedding_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/fields/field_kinds.h"
#include "api/fields/request_fields.h"

namespace octavo::server {
namespace {

using Call = EmbeddingCall;

constexpr size_t kMaxInputs = 2048;  // OpenAI's own bound

Json choice_schema(std::initializer_list<const char*> names) {
  Json schema = {{"type", "string"}, {"enum", Json::array()}};
  for (const char* name : names) schema["enum"].push_back(name);
  return schema;
}

// Whether the second of the two names was sent.
bool to_choice(const Json& value, const std::string& field, const char* first, const char* second) {
  if (value == first) return false;
  if (value != second)
    refuse(field, fmt::format("must be \"{}\" or \"{}\", not {}", first, second, shown(value)));
  return true;
}

FieldTable<Call> vector_fields() {
  return {
      used<Call>("model", string_schema(kMaxNameBytes), "One of /v1/models",
                 [](const Json& v, Call& c) { c.model = to_string(v, "model", kMaxNameBytes); }),
      {.name = "input",
       .use = FieldUse::kUsed,
       .schema = prompt_list_schema(kMaxInputs),
       .about = "Text, a list of texts, a list of token ids or a list of such lists",
       .read = [](const Json& v, Call& c) { c.input = to_prompts(v, "input", kMaxInputs); },
       .required = true},
      used<Call>("encoding_format", choice_schema({"float", "base64"}),
                 "float: a list of numbers; base64: of little-endian 32-bit floats",
                 [](const Json& v, Call& c) {
                   c.base64 = to_choice(v, "encoding_format", "float", "base64");
                 }),
      used<Call>(
          "dimensions", integer_schema(1, kMaxInt),
          "Keep so many numbers of each vector, where the model is made for that",
          [](const Json& v, Call& c) { c.dimensions = to_int(v, "dimensions", 1, kMaxInt); }),
      used<Call>("use_activation", boolean_schema(),
                 "Bring vectors to length 1; default: as the model's files say",
                 [](const Json& v, Call& c) { c.use_activation = to_bool(v, "use_activation"); }),
  };
}

FieldTable<Call> text_fields() {
  return {
      used<Call>("truncate_prompt_tokens",
                 {{"anyOf", {integer_schema(-1, -1), integer_schema(1, kMaxInt)}}},
                 "Cut longer texts to so many tokens; -1: to as many as fit",
                 [](const Json& v, Call& c) {
                   c.truncate_prompt_tokens = to_int(v, "truncate_prompt_tokens", -1, kMaxInt);
                   if (*c.truncate_prompt_tokens == 0)
                     refuse("truncate_prompt_tokens", "must not be 0");
                 }),
      used<Call>("truncation_side", choice_schema({"right", "left"}),
                 "Where texts are cut: right (the default) keeps their beginning",
                 [](const Json& v, Call& c) {
                   c.keep_end = to_choice(v, "truncation_side", "right", "left");
                 }),
      used<Call>(
          "add_special_tokens", boolean_schema(),
          "Put the tokenizer's own special tokens around texts; on unless switched off",
          [](const Json& v, Call& c) { c.add_special_tokens = to_bool(v, "add_special_tokens"); }),
  };
}

FieldTable<Call> refused_fields() {
  return {
      refused<Call>("messages", "conversations are not embedded; send their text as input"),
      refused<Call>("normalize", "was vLLM's name for use_activation"),
      refused<Call>("embed_dtype", "only float32 is supported",
                    [](const Json& v) { return v == "float32"; }),
      refused<Call>("endianness", "only little is supported",
                    [](const Json& v) { return v == "native" || v == "little"; }),
      refused<Call>("padding", "texts are not padded",
                    [](const Json& v) { return v == "do_not_pad"; }),
      refused<Call>("mm_processor_kwargs", "only text is supported"),
  };
}

// How much of a vector is kept. What the model is not made for leads to poor results, so it is not
// done unasked.
int dimensions_of(const Call& call, const ServedModel& model) {
  const PoolingPlan& plan = *model.pooling;
  if (!call.dimensions || *call.dimensions == model.hidden)
    return call.dimensions.value_or(plan.dimensions.value_or(0));
  const int asked = *call.dimensions;
  const auto& allowed = plan.matryoshka_dimensions;
  if (asked > model.hidden)
    refuse("dimensions", fmt::format("is {}; vectors have {}", asked, model.hidden));
  if (!plan.matryoshka)
    refuse("dimensions",
           "this model's config does not say that shorter vectors are of use "
           R"((--hf-overrides '{"is_matryoshka": true}' says so))");
  if (!allowed.empty() && std::ranges::count(allowed, asked) == 0)
    refuse("dimensions",
           fmt::format("is {}; this model is made for {}", asked, fmt::join(allowed, ", ")));
  return asked;
}

// Cut to `keep` tokens. The special tokens around the text stay: a last token may be one that the
// model was taught to sum up with.
std::vector<TokenId> encode_cut(const std::string& text, size_t keep, const Call& call,
                                const Tokenizer& tokenizer) {
  const std::vector<TokenId> whole = tokenizer.encode(text, call.add_special_tokens);
  if (whole.size() <= keep) return whole;
  std::vector<TokenId> bare = tokenizer.encode(text, false);
  const auto found = std::ranges::search(whole, bare);
  const size_t around = whole.size() - bare.size();
  if (around >= keep) refuse("truncate_prompt_tokens", "leaves no room for the text");
  std::vector<TokenId> cut(whole.begin(), found.begin());
  const auto kept = static_cast<std::ptrdiff_t>(keep - around);
  cut.insert(cut.end(), call.keep_end ? bare.end() - kept : bare.begin(),
             call.keep_end ? bare.end() : bare.begin() + kept);
  cut.insert(cut.end(), found.end(), whole.end());
  return cut;
}

void cut(std::vector<TokenId>& tokens, size_t keep, bool keep_end) {
  if (tokens.size() <= keep) return;
  if (keep_end) tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(keep));
  tokens.resize(keep);
}

}  // namespace

const FieldTable<EmbeddingCall>& embedding_fields() {
  static const FieldTable<Call> table = [] {
    FieldTable<Call> all = vector_fields();
    for (const auto& part : {text_fields(), request_fields<Call>(), refused_fields(),
                             hints<Call>({"user", "metadata", "store", "service_tier", "timeout"})})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

EmbeddingJob prepare_embedding(const Json& body, const ServedModel& model) {
  if (!model.pooling)
    refuse("model",
           "this server generates text; `octavo serve --runner pooling` makes one that embeds");
  EmbeddingCall call;
  IgnoredFields ignored = read_fields(body, embedding_fields(), call);
  check_model_name(call.model, model);
  EmbeddingJob job;
  job.engine = call.engine;
  job.engine.pooling = model.pooling->kind;
  job.id = call.request_id;
  job.ignored = std::move(ignored);
  job.base64 = call.base64;
  job.form = {.dimensions = dimensions_of(call, model),
              .normalize = call.use_activation.value_or(model.pooling->normalize)};
  const bool cuts = call.truncate_prompt_tokens.has_value();
  const int limit = call.truncate_prompt_tokens.value_or(-1);
  const auto keep = static_cast<size_t>(limit < 0 ? model.max_model_len : limit);
  const Tokenizer& tokenizer = *model.text.tokenizer;
  for (const std::string& text : call.input.texts)
    add_prompt(job,
               {.tokens = cuts ? encode_cut(text, keep, call, tokenizer)
                               : tokenizer.encode(text, call.add_special_tokens)},
               model, "input");
  for (std::vector<TokenId>& tokens : call.input.tokens) {
    if (cuts) cut(tokens, keep, call.keep_end);
    add_prompt(job, {.tokens = std::move(tokens)}, model, "input");
  }
  return job;
}

}  // namespace octavo::server

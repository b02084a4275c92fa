#include "api/openai/token_requests.h"

#include "api/fields/field_kinds.h"
#include "api/openai/chat_request.h"

namespace octavo::server {
namespace {

constexpr size_t kMaxBytes = 8u << 20;

struct TokenizeCall {
  std::string model = {};
  std::optional<std::string> prompt = {};
  ChatPromptCall chat = {};
  std::optional<bool> add_special_tokens = {};
  bool return_token_strs = false;
};

const FieldTable<TokenizeCall>& tokenize_fields() {
  using Call = TokenizeCall;
  static const FieldTable<Call> table = [] {
    FieldTable<Call> fields = {
        used<Call>("model", string_schema(kMaxNameBytes), "One of /v1/models",
                   [](const Json& v, Call& c) { c.model = to_string(v, "model", kMaxNameBytes); }),
        used<Call>("prompt", string_schema(kMaxBytes), "The text; this or messages",
                   [](const Json& v, Call& c) { c.prompt = to_string(v, "prompt", kMaxBytes); }),
        used<Call>("add_special_tokens", boolean_schema(),
                   "Put the tokenizer's own special tokens around the text; on for a prompt",
                   [](const Json& v, Call& c) {
                     c.add_special_tokens = to_bool(v, "add_special_tokens");
                   }),
        used<Call>(
            "return_token_strs", boolean_schema(), "Add the tokens as the vocabulary spells them",
            [](const Json& v, Call& c) { c.return_token_strs = to_bool(v, "return_token_strs"); }),
    };
    add_fields(fields, chat_prompt_fields(),
               [](Call& call) -> ChatPromptCall& { return call.chat; });
    // A prompt will do instead of messages.
    for (Field<Call>& field : fields) field.required = false;
    return fields;
  }();
  return table;
}

}  // namespace

Json tokenize_text(const Json& body, const ServedModel& model) {
  TokenizeCall call;
  read_fields(body, tokenize_fields(), call);
  check_model_name(call.model, model);
  const bool chat = !call.chat.messages.is_null();
  if (chat == call.prompt.has_value()) refuse("prompt", "send either prompt or messages");
  const std::string text = chat ? render_chat(call.chat, model) : *call.prompt;
  const auto tokens = model.text.tokenizer->encode(text, call.add_special_tokens.value_or(!chat));
  Json answer = {
      {"count", tokens.size()}, {"max_model_len", model.max_model_len}, {"tokens", tokens}};
  if (call.return_token_strs) {
    Json texts = Json::array();
    for (const TokenId token : tokens) texts.push_back(model.text.tokenizer->token_text(token));
    answer["token_strs"] = std::move(texts);
  }
  return answer;
}

namespace {

struct DetokenizeCall {
  std::string model = {};
  std::vector<TokenId> tokens = {};
};

const FieldTable<DetokenizeCall>& detokenize_fields() {
  using Call = DetokenizeCall;
  static const FieldTable<Call> table = {
      used<Call>("model", string_schema(kMaxNameBytes), "One of /v1/models",
                 [](const Json& v, Call& c) { c.model = to_string(v, "model", kMaxNameBytes); }),
      {.name = "tokens",
       .use = FieldUse::kUsed,
       .schema = tokens_schema(),
       .about = "Token ids",
       .read = [](const Json& v, Call& c) { c.tokens = to_tokens(v, "tokens"); },
       .required = true}};
  return table;
}

}  // namespace

Json detokenize_tokens(const Json& body, const ServedModel& model) {
  DetokenizeCall call;
  read_fields(body, detokenize_fields(), call);
  check_model_name(call.model, model);
  for (const TokenId token : call.tokens) {
    if (token >= model.vocab) refuse("tokens", "holds an id outside the vocabulary");
  }
  return {{"prompt", model.text.tokenizer->decode(call.tokens, false)}};
}

Json tokenize_schema() { return schema_of(tokenize_fields()); }
Json detokenize_schema() { return schema_of(detokenize_fields()); }

}  // namespace octavo::server

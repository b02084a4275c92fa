#include "api/openai/token_requests.h"

#include "api/fields/field_kinds.h"
#include "api/openai/chat_request.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxBytes = 8u << 20;

struct TokenizeRequest {
  std::string model = {};
  std::optional<std::string> prompt = {};
  ChatPromptRequest chat = {};
  std::optional<bool> add_special_tokens = {};
  bool return_token_strs = false;
};

const FieldTable<TokenizeRequest>& tokenize_fields() {
  static const FieldTable<TokenizeRequest> table = [] {
    FieldTable<TokenizeRequest> fields = {
        used<TokenizeRequest>("model", string_schema(kMaxNameBytes), "A model listed by /v1/models",
                              [](const Json& v, TokenizeRequest& t) {
                                t.model = to_string(v, "model", kMaxNameBytes);
                              }),
        used<TokenizeRequest>("prompt", string_schema(kMaxBytes),
                              "The text to tokenize; send either this or messages",
                              [](const Json& v, TokenizeRequest& t) {
                                t.prompt = to_string(v, "prompt", kMaxBytes);
                              }),
        used<TokenizeRequest>("add_special_tokens", boolean_schema(),
                              "Add the tokenizer's special tokens; on by default for a prompt",
                              [](const Json& v, TokenizeRequest& t) {
                                t.add_special_tokens = to_bool(v, "add_special_tokens");
                              }),
        used<TokenizeRequest>("return_token_strs", boolean_schema(),
                              "Return the tokens as the vocabulary spells them",
                              [](const Json& v, TokenizeRequest& t) {
                                t.return_token_strs = to_bool(v, "return_token_strs");
                              }),
    };
    add_fields(fields, chat_prompt_fields(),
               [](TokenizeRequest& request) -> ChatPromptRequest& { return request.chat; });
    // Either prompt or messages is given, so neither is required.
    for (Field<TokenizeRequest>& field : fields) field.required = false;
    return fields;
  }();
  return table;
}

}  // namespace

Json tokenize_text(const Json& body, const ServedModel& model, const Preparation& preparation) {
  TokenizeRequest request;
  read_fields(body, tokenize_fields(), request);
  check_model_name(request.model, model);
  const bool chat = !request.chat.messages.is_null();
  if (chat == request.prompt.has_value()) refuse("prompt", "send either prompt or messages");
  preparation.check();
  const bool special = request.add_special_tokens.value_or(!chat);
  const std::vector<TokenId> tokens =
      chat ? counted_chat_tokens(request.chat, special, model, preparation)
           : encode_counted({.text = std::move(*request.prompt)}, special, model, "prompt");
  Json answer = {
      {"count", tokens.size()}, {"max_model_len", model.max_model_len}, {"tokens", tokens}};
  if (request.return_token_strs) {
    Json texts = Json::array();
    for (const TokenId token : tokens) texts.push_back(model.text.tokenizer->token_text(token));
    answer["token_strs"] = std::move(texts);
  }
  return answer;
}

namespace {

struct DetokenizeRequest {
  std::string model = {};
  std::vector<TokenId> tokens = {};
};

const FieldTable<DetokenizeRequest>& detokenize_fields() {
  static const FieldTable<DetokenizeRequest> table = {
      used<DetokenizeRequest>("model", string_schema(kMaxNameBytes), "A model listed by /v1/models",
                              [](const Json& v, DetokenizeRequest& t) {
                                t.model = to_string(v, "model", kMaxNameBytes);
                              }),
      {.name = "tokens",
       .use = FieldUse::kUsed,
       .schema = tokens_schema(),
       .about = "Token ids",
       .read = [](const Json& v, DetokenizeRequest& t) { t.tokens = to_tokens(v, "tokens"); },
       .required = true}};
  return table;
}

}  // namespace

Json detokenize_tokens(const Json& body, const ServedModel& model, const Preparation& preparation) {
  DetokenizeRequest request;
  read_fields(body, detokenize_fields(), request);
  check_model_name(request.model, model);
  for (const TokenId token : request.tokens) {
    if (token >= model.vocab) refuse("tokens", "contains an id outside the vocabulary");
  }
  preparation.check();
  return {{"prompt", model.text.tokenizer->decode(request.tokens, false)}};
}

Json tokenize_schema() { return schema_of(tokenize_fields()); }
Json detokenize_schema() { return schema_of(detokenize_fields()); }

}  // namespace octavo::api

// The field table of generation_request.h. Names and meanings are OpenAI's and vLLM's.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "api/fields/field_kinds.h"
#include "api/fields/request_fields.h"
#include "api/generation_request.h"

namespace octavo::api {
namespace {

void read_stop(const Json& value, GenerationRequest& request) {
  const auto add = [&](const Json& stop) {
    request.text.stop.push_back(to_string(stop, "stop", kMaxStopBytes));
    if (request.text.stop.back().empty()) refuse("stop", "contains an empty string");
  };
  if (!value.is_array()) return add(value);
  if (value.size() > kMaxStops)
    refuse("stop", fmt::format("has {} strings; at most {} are allowed", value.size(), kMaxStops));
  for (const Json& stop : value) add(stop);
}

// Bounded because the engine searches them for every generated token.
void read_stop_tokens(const Json& value, GenerationRequest& request) {
  request.engine.stop_token_ids = to_tokens(value, "stop_token_ids");
  if (request.engine.stop_token_ids.size() > kMaxStopTokens)
    refuse("stop_token_ids", fmt::format("has {} ids; at most {} are allowed",
                                         request.engine.stop_token_ids.size(), kMaxStopTokens));
}

Json stop_tokens_schema() {
  Json schema = tokens_schema();
  schema["maxItems"] = kMaxStopTokens;
  return schema;
}

void read_stream_options(const Json& value, GenerationRequest& request) {
  if (!value.is_object()) refuse("stream_options", "must be an object");
  request.has_stream_options = true;
  for (const auto& [name, option] : value.items()) {
    if (option.is_null()) continue;
    const std::string field = "stream_options." + name;
    if (name == "include_usage") {
      request.include_usage = to_bool(option, field);
    } else if (name == "continuous_usage_stats") {
      request.continuous_usage_stats = to_bool(option, field);
    } else if (name == "include_obfuscation") {
      to_bool(option, field);  // padding against eavesdroppers; useless without TLS
    } else {
      refuse(field, "is not a known option");
    }
  }
}

void read_logit_bias(const Json& value, GenerationRequest& request) {
  if (!value.is_object()) refuse("logit_bias", "must be an object of token id to bias");
  for (const auto& [token, bias] : value.items()) {
    int id = -1;
    const auto read = std::from_chars(token.data(), token.data() + token.size(), id);
    if (read.ec != std::errc() || read.ptr != token.data() + token.size() || id < 0)
      refuse("logit_bias", "has a key that is not a token id");
    request.engine.sampling.logit_bias.emplace_back(id, to_number(bias, "logit_bias", -100, 100));
  }
}

void read_bad_words(const Json& value, GenerationRequest& request) {
  if (!value.is_array() || value.size() > 1024)
    refuse("bad_words", "must be a list of at most 1024 strings");
  for (const Json& word : value)
    request.bad_words.push_back(to_string(word, "bad_words", kMaxStopBytes));
}

void read_allowed_tokens(const Json& value, GenerationRequest& request) {
  request.engine.sampling.allowed_token_ids = to_tokens(value, "allowed_token_ids");
  if (request.engine.sampling.allowed_token_ids.empty())
    refuse("allowed_token_ids", "is empty; omit it to allow all tokens");
}

FieldTable<GenerationRequest> sampling_fields() {
  return {
      used<GenerationRequest>("temperature", number_schema(0, 100),
                              "Sampling temperature; 0 is greedy. Default: the model's own, or 0.7",
                              [](const Json& v, GenerationRequest& t) {
                                t.temperature = to_number(v, "temperature", 0, 100);
                              }),
      used<GenerationRequest>(
          "top_p", {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}},
          "Sample from the most likely tokens whose probabilities add up to this value",
          [](const Json& v, GenerationRequest& t) {
            t.top_p = to_number(v, "top_p", 0, 1);
            if (*t.top_p == 0) refuse("top_p", "must be above 0 and at most 1");
          }),
      used<GenerationRequest>(
          "top_k", integer_schema(-1, kMaxInt),
          "Sample from this many of the most likely tokens; 0 and -1 keep all",
          [](const Json& v, GenerationRequest& t) { t.top_k = to_int(v, "top_k", -1, kMaxInt); }),
      used<GenerationRequest>(
          "min_p", number_schema(0, 1),
          "Drop tokens whose probability is below this fraction of the most likely token's",
          [](const Json& v, GenerationRequest& t) { t.min_p = to_number(v, "min_p", 0, 1); }),
      used<GenerationRequest>(
          "repetition_penalty", number_schema(0.01, 100),
          "Values above 1 make tokens of the prompt and the output less likely to repeat",
          [](const Json& v, GenerationRequest& t) {
            t.repetition_penalty = to_number(v, "repetition_penalty", 0.01, 100);
          }),
      used<GenerationRequest>("presence_penalty", number_schema(-2, 2),
                              "Subtracted from the logits of tokens already generated",
                              [](const Json& v, GenerationRequest& t) {
                                t.engine.sampling.presence_penalty =
                                    to_number(v, "presence_penalty", -2, 2);
                              }),
      used<GenerationRequest>(
          "frequency_penalty", number_schema(-2, 2),
          "Subtracted from a token's logit once per earlier occurrence in the output",
          [](const Json& v, GenerationRequest& t) {
            t.engine.sampling.frequency_penalty = to_number(v, "frequency_penalty", -2, 2);
          }),
      used<GenerationRequest>(
          "seed",
          integer_schema(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()),
          "The same seed gives the same output; without one, each request uses a new seed",
          [](const Json& v, GenerationRequest& t) {
            t.seed = to_integer(v, "seed", std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max());
          }),
      used<GenerationRequest>("logit_bias",
                              {{"type", "object"},
                               {"additionalProperties", number_schema(-100, 100)},
                               {"propertyNames", {{"pattern", "^[0-9]{1,6}$"}}}},
                              "Added to the logits of these token ids", read_logit_bias),
      used<GenerationRequest>("allowed_token_ids", filled_tokens_schema(),
                              "Only these tokens may be sampled", read_allowed_tokens),
      used<GenerationRequest>("bad_words", filled_strings_schema(kMaxStopBytes, 1024),
                              "Words that must not appear in the output", read_bad_words),
  };
}

FieldTable<GenerationRequest> length_fields() {
  return {
      used<GenerationRequest>(
          "max_tokens", integer_schema(0, kMaxInt),
          "Maximum number of output tokens; the context length is a further limit",
          [](const Json& v, GenerationRequest& t) {
            t.max_tokens = to_int(v, "max_tokens", 0, kMaxInt);
          }),
      used<GenerationRequest>("min_tokens", integer_schema(0, kMaxInt),
                              "Stop tokens are suppressed until the output has this many tokens",
                              [](const Json& v, GenerationRequest& t) {
                                t.engine.min_tokens = to_int(v, "min_tokens", 0, kMaxInt);
                              }),
      used<GenerationRequest>("stop",
                              {{"anyOf",
                                {filled_string_schema(kMaxStopBytes),
                                 filled_strings_schema(kMaxStopBytes, kMaxStops)}}},
                              "The output ends before the first of these strings", read_stop),
      used<GenerationRequest>("stop_token_ids", stop_tokens_schema(),
                              "The output ends at the first of these tokens", read_stop_tokens),
      used<GenerationRequest>(
          "include_stop_str_in_output", boolean_schema(), "Keep the stop string in the output",
          [](const Json& v, GenerationRequest& t) {
            t.text.include_stop_str_in_output = to_bool(v, "include_stop_str_in_output");
          }),
      used<GenerationRequest>("ignore_eos", boolean_schema(),
                              "Continue past the model's own stop tokens",
                              [](const Json& v, GenerationRequest& t) {
                                t.engine.ignore_eos = to_bool(v, "ignore_eos");
                              }),
      used<GenerationRequest>(
          "truncate_prompt_tokens",
          {{"anyOf", {integer_schema(-1, -1), integer_schema(1, kMaxInt)}}},
          "Keep only this many tokens at the end of the prompt; -1: as many as fit",
          [](const Json& v, GenerationRequest& t) {
            t.truncate_prompt_tokens = to_int(v, "truncate_prompt_tokens", -1, kMaxInt);
            if (*t.truncate_prompt_tokens == 0) refuse("truncate_prompt_tokens", "must not be 0");
          }),
  };
}

FieldTable<GenerationRequest> form_fields() {
  return {
      used<GenerationRequest>("model", string_schema(kMaxNameBytes), "A model listed by /v1/models",
                              [](const Json& v, GenerationRequest& t) {
                                t.model = to_string(v, "model", kMaxNameBytes);
                              }),
      used<GenerationRequest>(
          "n", integer_schema(1, 64), "Number of choices per prompt",
          [](const Json& v, GenerationRequest& t) { t.engine.n = to_int(v, "n", 1, 64); }),
      used<GenerationRequest>(
          "stream", boolean_schema(), "Stream the output as server-sent events",
          [](const Json& v, GenerationRequest& t) { t.stream = to_bool(v, "stream"); }),
      used<GenerationRequest>(
          "stream_options",
          {{"type", "object"},
           {"properties",
            {{"include_usage", boolean_schema()},
             {"continuous_usage_stats", boolean_schema()},
             {"include_obfuscation", boolean_schema()}}},
           {"additionalProperties", false}},
          "include_usage: a final chunk with the usage; continuous_usage_stats: the usage "
          "in every chunk. Only with stream",
          read_stream_options),
      used<GenerationRequest>("skip_special_tokens", boolean_schema(),
                              "Omit special tokens from the text",
                              [](const Json& v, GenerationRequest& t) {
                                t.text.skip_special_tokens = to_bool(v, "skip_special_tokens");
                              }),
      used<GenerationRequest>("add_special_tokens", boolean_schema(),
                              "Add the tokenizer's special tokens to the prompt",
                              [](const Json& v, GenerationRequest& t) {
                                t.add_special_tokens = to_bool(v, "add_special_tokens");
                              }),
      used<GenerationRequest>(
          "prompt_logprobs", integer_schema(0, kMaxLogprobs),
          "Log probabilities of the prompt's tokens, with this many alternatives. Not with stream",
          [](const Json& v, GenerationRequest& t) {
            t.engine.sampling.prompt_logprobs = to_int(v, "prompt_logprobs", 0, kMaxLogprobs);
          }),
      used<GenerationRequest>("return_token_ids", boolean_schema(),
                              "Return the token ids of the prompt and the output",
                              [](const Json& v, GenerationRequest& t) {
                                t.return_token_ids = to_bool(v, "return_token_ids");
                              }),
      used<GenerationRequest>(
          "resumable", boolean_schema(),
          "Events and answers carry what resume needs if they are interrupted: token ids, and in "
          "the first event the object resume",
          [](const Json& v, GenerationRequest& t) { t.resumable = to_bool(v, "resumable"); }),
      used<GenerationRequest>(
          "resume_token_ids", resume_tokens_schema(),
          "The token ids of an interrupted answer, one list per choice. The answer continues with "
          "the next byte, as if it had not been interrupted",
          [](const Json& v, GenerationRequest& t) { t.resume_tokens = read_resume_tokens(v); }),
      used<GenerationRequest>(
          "resume", resume_schema(),
          "The object of this name in the first event of the interrupted answer",
          [](const Json& v, GenerationRequest& t) { t.resume = read_resume(v); }),
      used<GenerationRequest>(
          "response_format", response_format_schema(),
          "Constrain the output to a JSON object or to JSON that matches a schema; text: "
          "no constraint",
          [](const Json& v, GenerationRequest& t) { t.response_format = read_response_format(v); }),
      used<GenerationRequest>(
          "structured_outputs", structured_outputs_schema(),
          "Constrain the output to a JSON schema (json), a regex, one of several strings (choice), "
          "a grammar (Lark or GBNF), or any JSON object. Not with response_format",
          [](const Json& v, GenerationRequest& t) {
            t.structured_outputs = read_structured_outputs(v);
          }),
  };
}

FieldTable<GenerationRequest> refused_fields() {
  const auto renamed = [](const char* now) {
    return fmt::format("is vLLM's former name; use structured_outputs.{}", now);
  };
  return {
      refused<GenerationRequest>("guided_json", renamed("json")),
      refused<GenerationRequest>("guided_regex", renamed("regex")),
      refused<GenerationRequest>("guided_choice", renamed("choice")),
      refused<GenerationRequest>("guided_grammar", renamed("grammar")),
      refused<GenerationRequest>("guided_whitespace_pattern", renamed("whitespace_pattern")),
      refused<GenerationRequest>("guided_decoding_backend",
                                 "there is only one backend; omit this field"),
      refused<GenerationRequest>("structural_tag",
                                 "is not supported; use response_format or structured_outputs"),
      refused<GenerationRequest>("use_beam_search", "beam search is not supported", asks_false),
      refused<GenerationRequest>("length_penalty", "applies to beam search, which is not supported",
                                 [](const Json& v) { return v == 1; }),
      refused<GenerationRequest>("logits_processors", "is not supported"),
      refused<GenerationRequest>("kv_transfer_params", "is not supported"),
      refused<GenerationRequest>("vllm_xargs", "is not supported"),
      refused<GenerationRequest>("return_tokens_as_token_ids",
                                 "is not supported; see return_token_ids", asks_false),
      refused<GenerationRequest>("spaces_between_special_tokens", "false is not supported",
                                 [](const Json& v) { return v == true; }),
      refused<GenerationRequest>("detokenize", "false is not supported",
                                 [](const Json& v) { return v == true; }),
  };
}

FieldTable<GenerationRequest> hint_fields() {
  return hints<GenerationRequest>({"keep_alive", "user", "metadata", "store", "service_tier",
                                   "safety_identifier", "prompt_cache_key",
                                   "prompt_cache_retention", "cache_control", "context_management",
                                   "timeout"});
}

}  // namespace

const FieldTable<GenerationRequest>& generation_fields() {
  static const FieldTable<GenerationRequest> table = [] {
    FieldTable<GenerationRequest> all = form_fields();
    for (const auto& part : {length_fields(), sampling_fields(),
                             request_fields<GenerationRequest>(), refused_fields(), hint_fields()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

}  // namespace octavo::api

// The table of generation_call.h. Names and meanings are OpenAI's and vLLM's.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "api/fields/field_kinds.h"
#include "api/fields/request_fields.h"
#include "api/generation_request.h"

namespace octavo::server {
namespace {

using Call = GenerationCall;

void read_stop(const Json& value, Call& call) {
  const auto add = [&](const Json& stop) {
    call.text.stop.push_back(to_string(stop, "stop", kMaxStopBytes));
    if (call.text.stop.back().empty()) refuse("stop", "holds an empty string");
  };
  if (!value.is_array()) return add(value);
  if (value.size() > kMaxStops)
    refuse("stop", fmt::format("has {} strings; at most {} are allowed", value.size(), kMaxStops));
  for (const Json& stop : value) add(stop);
}

// The engine looks through them for every token of every answer.
void read_stop_tokens(const Json& value, Call& call) {
  call.engine.stop_token_ids = to_tokens(value, "stop_token_ids");
  if (call.engine.stop_token_ids.size() > kMaxStopTokens)
    refuse("stop_token_ids", fmt::format("has {} ids; at most {} are allowed",
                                         call.engine.stop_token_ids.size(), kMaxStopTokens));
}

Json stop_tokens_schema() {
  Json schema = tokens_schema();
  schema["maxItems"] = kMaxStopTokens;
  return schema;
}

void read_stream_options(const Json& value, Call& call) {
  if (!value.is_object()) refuse("stream_options", "must be an object");
  call.has_stream_options = true;
  for (const auto& [name, option] : value.items()) {
    if (option.is_null()) continue;
    const std::string field = "stream_options." + name;
    if (name == "include_usage") {
      call.include_usage = to_bool(option, field);
    } else if (name == "continuous_usage_stats") {
      call.continuous_usage_stats = to_bool(option, field);
    } else if (name == "include_obfuscation") {
      to_bool(option, field);  // padding against listeners: nothing to do without TLS
    } else {
      refuse(field, "is not an option octavo knows");
    }
  }
}

void read_logit_bias(const Json& value, Call& call) {
  if (!value.is_object()) refuse("logit_bias", "must be an object of token id to bias");
  for (const auto& [token, bias] : value.items()) {
    int id = -1;
    const auto read = std::from_chars(token.data(), token.data() + token.size(), id);
    if (read.ec != std::errc() || read.ptr != token.data() + token.size() || id < 0)
      refuse("logit_bias", "has a key that is no token id");
    call.engine.sampling.logit_bias.emplace_back(id, to_number(bias, "logit_bias", -100, 100));
  }
}

void read_bad_words(const Json& value, Call& call) {
  if (!value.is_array() || value.size() > 1024)
    refuse("bad_words", "must be a list of at most 1024 strings");
  for (const Json& word : value)
    call.bad_words.push_back(to_string(word, "bad_words", kMaxStopBytes));
}

void read_allowed_tokens(const Json& value, Call& call) {
  call.engine.sampling.allowed_token_ids = to_tokens(value, "allowed_token_ids");
  if (call.engine.sampling.allowed_token_ids.empty())
    refuse("allowed_token_ids", "is empty; leave it out to allow all");
}

FieldTable<Call> sampling_fields() {
  return {
      used<Call>(
          "temperature", number_schema(0, 100),
          "0 takes the likeliest token; default: the model's own, or 1",
          [](const Json& v, Call& c) { c.temperature = to_number(v, "temperature", 0, 100); }),
      used<Call>("top_p", {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}},
                 "Keep the likeliest tokens that together reach this probability",
                 [](const Json& v, Call& c) {
                   c.top_p = to_number(v, "top_p", 0, 1);
                   if (*c.top_p == 0) refuse("top_p", "must be above 0 and at most 1");
                 }),
      used<Call>("top_k", integer_schema(-1, kMaxInt),
                 "Keep this many of the likeliest tokens; 0 and -1 keep all",
                 [](const Json& v, Call& c) { c.top_k = to_int(v, "top_k", -1, kMaxInt); }),
      used<Call>("min_p", number_schema(0, 1),
                 "Drop tokens below this share of the likeliest one's probability",
                 [](const Json& v, Call& c) { c.min_p = to_number(v, "min_p", 0, 1); }),
      used<Call>("repetition_penalty", number_schema(0.01, 100),
                 "Above 1: tokens of prompt and answer become less likely to come again",
                 [](const Json& v, Call& c) {
                   c.repetition_penalty = to_number(v, "repetition_penalty", 0.01, 100);
                 }),
      used<Call>("presence_penalty", number_schema(-2, 2),
                 "Taken off the logits of tokens the answer has",
                 [](const Json& v, Call& c) {
                   c.engine.sampling.presence_penalty = to_number(v, "presence_penalty", -2, 2);
                 }),
      used<Call>("frequency_penalty", number_schema(-2, 2),
                 "Taken off for each time the answer has the token",
                 [](const Json& v, Call& c) {
                   c.engine.sampling.frequency_penalty = to_number(v, "frequency_penalty", -2, 2);
                 }),
      used<Call>(
          "seed",
          integer_schema(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()),
          "The same seed gives the same answer; without one each answer is drawn anew",
          [](const Json& v, Call& c) {
            c.seed = to_integer(v, "seed", std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max());
          }),
      used<Call>("logit_bias",
                 {{"type", "object"},
                  {"additionalProperties", number_schema(-100, 100)},
                  {"propertyNames", {{"pattern", "^[0-9]{1,6}$"}}}},
                 "Added to the logits of tokens, by their id", read_logit_bias),
      used<Call>("allowed_token_ids", filled_tokens_schema(), "Only these tokens may be drawn",
                 read_allowed_tokens),
      used<Call>("bad_words", filled_strings_schema(kMaxStopBytes, 1024),
                 "Words that may not be written", read_bad_words),
  };
}

FieldTable<Call> length_fields() {
  return {
      used<Call>(
          "max_tokens", integer_schema(0, kMaxInt),
          "The longest answer in tokens; it ends earlier where the context does",
          [](const Json& v, Call& c) { c.max_tokens = to_int(v, "max_tokens", 0, kMaxInt); }),
      used<Call>("min_tokens", integer_schema(0, kMaxInt),
                 "Stop tokens are held back until the answer has this many",
                 [](const Json& v, Call& c) {
                   c.engine.min_tokens = to_int(v, "min_tokens", 0, kMaxInt);
                 }),
      used<Call>("stop",
                 {{"anyOf",
                   {filled_string_schema(kMaxStopBytes),
                    filled_strings_schema(kMaxStopBytes, kMaxStops)}}},
                 "The answer ends before the first of these", read_stop),
      used<Call>("stop_token_ids", stop_tokens_schema(), "The answer ends with the first of these",
                 read_stop_tokens),
      used<Call>("include_stop_str_in_output", boolean_schema(), "Keep what stopped the answer",
                 [](const Json& v, Call& c) {
                   c.text.include_stop_str_in_output = to_bool(v, "include_stop_str_in_output");
                 }),
      used<Call>("ignore_eos", boolean_schema(), "Go on after the model's own stop tokens",
                 [](const Json& v, Call& c) { c.engine.ignore_eos = to_bool(v, "ignore_eos"); }),
      used<Call>("truncate_prompt_tokens",
                 {{"anyOf", {integer_schema(-1, -1), integer_schema(1, kMaxInt)}}},
                 "Keep only this many tokens at the prompt's end; -1: as many as fit",
                 [](const Json& v, Call& c) {
                   c.truncate_prompt_tokens = to_int(v, "truncate_prompt_tokens", -1, kMaxInt);
                   if (*c.truncate_prompt_tokens == 0)
                     refuse("truncate_prompt_tokens", "must not be 0");
                 }),
  };
}

FieldTable<Call> form_fields() {
  return {
      used<Call>("model", string_schema(kMaxNameBytes), "One of /v1/models",
                 [](const Json& v, Call& c) { c.model = to_string(v, "model", kMaxNameBytes); }),
      used<Call>("n", integer_schema(1, 64), "Answers to each prompt",
                 [](const Json& v, Call& c) { c.engine.n = to_int(v, "n", 1, 64); }),
      used<Call>("stream", boolean_schema(), "Send the answer as it comes, as server-sent events",
                 [](const Json& v, Call& c) { c.stream = to_bool(v, "stream"); }),
      used<Call>(
          "stream_options",
          {{"type", "object"},
           {"properties",
            {{"include_usage", boolean_schema()},
             {"continuous_usage_stats", boolean_schema()},
             {"include_obfuscation", boolean_schema()}}},
           {"additionalProperties", false}},
          "include_usage: one more chunk with the usage; continuous_usage_stats: usage in every "
          "chunk. Only with stream",
          read_stream_options),
      used<Call>("skip_special_tokens", boolean_schema(), "Leave special tokens out of the text",
                 [](const Json& v, Call& c) {
                   c.text.skip_special_tokens = to_bool(v, "skip_special_tokens");
                 }),
      used<Call>(
          "add_special_tokens", boolean_schema(),
          "Put the tokenizer's own special tokens around the prompt",
          [](const Json& v, Call& c) { c.add_special_tokens = to_bool(v, "add_special_tokens"); }),
      used<Call>(
          "prompt_logprobs", integer_schema(0, kMaxLogprobs),
          "Log probabilities of the prompt's tokens, with so many alternatives. Not with stream",
          [](const Json& v, Call& c) {
            c.engine.sampling.prompt_logprobs = to_int(v, "prompt_logprobs", 0, kMaxLogprobs);
          }),
      used<Call>(
          "return_token_ids", boolean_schema(), "Add the token ids of prompt and answer",
          [](const Json& v, Call& c) { c.return_token_ids = to_bool(v, "return_token_ids"); }),
      used<Call>("response_format", response_format_schema(),
                 "The answer is text, a JSON object, or JSON that fits a schema",
                 [](const Json& v, Call& c) { c.response_format = read_response_format(v); }),
      used<Call>("structured_outputs", structured_outputs_schema(),
                 "The answer fits a schema (json), a regex, one of a choice, a Lark grammar, or is "
                 "a JSON object. Not with response_format",
                 [](const Json& v, Call& c) { c.structured_outputs = read_structured_outputs(v); }),
  };
}

FieldTable<Call> refused_fields() {
  const auto renamed = [](const char* now) {
    return fmt::format("is vLLM's old name; use structured_outputs.{}", now);
  };
  return {
      refused<Call>("guided_json", renamed("json")),
      refused<Call>("guided_regex", renamed("regex")),
      refused<Call>("guided_choice", renamed("choice")),
      refused<Call>("guided_grammar", renamed("grammar")),
      refused<Call>("guided_whitespace_pattern", renamed("whitespace_pattern")),
      refused<Call>("guided_decoding_backend", "there is one backend; leave it out"),
      refused<Call>("structural_tag",
                    "is not supported; use response_format or structured_outputs"),
      refused<Call>("use_beam_search", "beam search is not supported", asks_false),
      refused<Call>("length_penalty", "belongs to beam search, which is not supported",
                    [](const Json& v) { return v == 1; }),
      refused<Call>("logits_processors", "is not supported"),
      refused<Call>("kv_transfer_params", "is not supported"),
      refused<Call>("vllm_xargs", "is not supported"),
      refused<Call>("return_tokens_as_token_ids", "is not supported; see return_token_ids",
                    asks_false),
      refused<Call>("spaces_between_special_tokens", "false is not supported",
                    [](const Json& v) { return v == true; }),
      refused<Call>("detokenize", "false is not supported",
                    [](const Json& v) { return v == true; }),
  };
}

FieldTable<Call> hint_fields() {
  return hints<Call>({"user", "metadata", "store", "service_tier", "safety_identifier",
                      "prompt_cache_key", "prompt_cache_retention", "cache_control",
                      "context_management", "timeout"});
}

}  // namespace

const FieldTable<GenerationCall>& generation_fields() {
  static const FieldTable<GenerationCall> table = [] {
    FieldTable<Call> all = form_fields();
    for (const auto& part : {length_fields(), sampling_fields(), request_fields<Call>(),
                             refused_fields(), hint_fields()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

}  // namespace octavo::server

#include "api/ollama/ollama_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace octavo::api {
namespace {

using Options = OllamaRequest;

void read_num_predict(const Json& value, Options& request) {
  const int count = to_int(value, "num_predict", -2, kMaxInt);
  if (count == 0) refuse("num_predict", "must be at least 1, or -1 for no limit");
  if (count > 0) request.chat["max_tokens"] = count;
}

void read_option_seed(const Json& value, Options& request) {
  if (value != -1) request.chat["seed"] = value;
}

FieldTable<Options> used_options() {
  FieldTable<Options> fields = {
      used<Options>("num_predict", integer_schema(-2, kMaxInt),
                    "Maximum number of output tokens; -1 and -2: until the context is full, which "
                    "is the default",
                    read_num_predict),
      used<Options>(
          "num_ctx", integer_schema(1, kMaxInt),
          "Context length of this request: a longer prompt is refused, and the output "
          "ends there. A value above --max-model-len has no effect",
          [](const Json& v, Options& t) { t.num_ctx = to_int(v, "num_ctx", 1, kMaxInt); }),
      used<Options>(
          "seed",
          integer_schema(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()),
          "The same seed gives the same output; -1 or none: a new seed", read_option_seed),
      used<Options>("repeat_penalty", number_schema(0.01, 100),
                    "Values above 1 make tokens of the prompt and the output less likely to repeat",
                    [](const Json& v, Options& t) { t.chat["repetition_penalty"] = v; }),
      used<Options>("repeat_last_n", integer_schema(-1, kMaxInt),
                    "Tokens that the penalties look at: -1 (all, the default) or 0 (no penalties)",
                    [](const Json& v, Options& t) {
                      t.repeat_last_n = to_int(v, "repeat_last_n", -1, kMaxInt);
                    }),
  };
  const auto same = passed_on<Options>(
      {"temperature", "top_k", "top_p", "min_p", "stop", "presence_penalty", "frequency_penalty"});
  fields.insert(fields.end(), same.begin(), same.end());
  return fields;
}

FieldTable<Options> refused_options() {
  const auto is = [](Json harmless) {
    return [harmless = std::move(harmless)](const Json& value) { return value == harmless; };
  };
  return {
      refused<Options>("mirostat", "is not supported; use top_p or min_p", is(0)),
      refused<Options>("typical_p", "is not supported; use top_p or min_p", is(1)),
      refused<Options>("tfs_z", "is not supported; use top_p or min_p", is(1)),
      refused<Options>("penalize_newline", "false is not supported", is(true)),
      refused<Options>("rope_frequency_base", "is fixed by the model's files", is(0)),
      refused<Options>("rope_frequency_scale", "is fixed by the model's files", is(0)),
      refused<Options>("vocab_only", "is not supported", is(false)),
  };
}

// Without mirostat its two parameters have no effect, and without a context that is shifted neither
// has num_keep. The others say how a model is loaded.
FieldTable<Options> ignored_options() {
  return hints<Options>({"mirostat_tau", "mirostat_eta", "num_keep", "num_batch", "num_gpu",
                         "main_gpu", "num_thread", "numa", "num_gqa", "low_vram", "f16_kv",
                         "logits_all", "use_mmap", "use_mlock", "embedding_only",
                         "draft_num_predict"});
}

bool is_set(const Json& chat, const char* name, double neutral) {
  return chat.contains(name) && chat.at(name) != neutral;
}

void settle_penalties(Options& request, const ServedModel& model) {
  if (!request.repeat_last_n || *request.repeat_last_n < 0 ||
      *request.repeat_last_n >= model.max_model_len)
    return;
  if (*request.repeat_last_n == 0) {
    request.chat["repetition_penalty"] = 1;
    request.chat.erase("presence_penalty");
    request.chat.erase("frequency_penalty");
    return;
  }
  if (is_set(request.chat, "repetition_penalty", 1) ||
      is_set(request.chat, "presence_penalty", 0) || is_set(request.chat, "frequency_penalty", 0))
    refuse("options.repeat_last_n",
           fmt::format("is {}; only -1 (all tokens) and 0 (no penalties) are supported",
                       *request.repeat_last_n));
  request.ignore("options", "repeat_last_n");
}

}  // namespace

const FieldTable<OllamaRequest>& ollama_options() {
  static const FieldTable<Options> table = [] {
    FieldTable<Options> all = used_options();
    for (const auto& part : {refused_options(), ignored_options()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

void read_ollama_options(const Json& value, OllamaRequest& request) {
  if (!value.is_object()) refuse("options", "must be an object");
  try {
    for (const std::string& name : read_fields(value, ollama_options(), request))
      request.ignore("options", name);
  } catch (const RequestError& error) {
    const std::string message = std::string(error.what()).substr(error.param().size() + 2);
    throw RequestError(error.status(), "options." + error.param(), message);
  }
}

void settle_ollama_options(OllamaRequest& request, const ServedModel& model) {
  settle_penalties(request, model);
  if (!request.num_ctx || *request.num_ctx <= model.max_model_len) return;
  // Never silent: a prompt that does not fit is refused, an output that does not ends by length.
  request.ignore("options", "num_ctx");
  request.num_ctx.reset();
}

const std::vector<FieldName>& ollama_option_names() {
  static const std::vector<FieldName> names = {
      {"temperature", "options.temperature"},
      {"top_k", "options.top_k"},
      {"top_p", "options.top_p"},
      {"min_p", "options.min_p"},
      {"seed", "options.seed"},
      {"stop", "options.stop"},
      {"repetition_penalty", "options.repeat_penalty"},
      {"presence_penalty", "options.presence_penalty"},
      {"frequency_penalty", "options.frequency_penalty"},
      {"max_tokens", "options.num_predict"},
  };
  return names;
}

ServedModel with_context(const ServedModel& model, std::optional<int> num_ctx) {
  ServedModel limited = model;
  limited.max_model_len = std::min(num_ctx.value_or(model.max_model_len), model.max_model_len);
  return limited;
}

}  // namespace octavo::api

// generation_request.h - what every endpoint that generates can be asked, whatever its prompt looks
// like.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/fields/body_fields.h"
#include "api/openai/structured_output.h"
#include "api/served_model.h"
#include "generation/answer_text.h"
#include "scheduler/request.h"

namespace octavo::api {

inline constexpr size_t kMaxStops = 16;
inline constexpr size_t kMaxStopBytes = 1024;
inline constexpr size_t kMaxStopTokens = 1024;
inline constexpr int kMaxLogprobs = 20;

// Fields as they were sent; those that have a default elsewhere stay empty.
struct GenerationRequest {
  std::string model = {};
  bool stream = false;
  bool has_stream_options = false;
  bool include_usage = false;           // one more chunk, with the usage
  bool continuous_usage_stats = false;  // usage in every chunk
  std::optional<float> temperature = {};
  std::optional<float> top_p = {};
  std::optional<int> top_k = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition_penalty = {};
  std::optional<int64_t> seed = {};
  std::optional<int> max_tokens = {};
  std::vector<std::string> bad_words = {};
  std::optional<int> truncate_prompt_tokens = {};  // -1: as many as fit
  std::optional<bool> add_special_tokens = {};
  bool return_token_ids = false;
  std::string request_id = {};
  std::optional<StructuredOutput> response_format = {};
  std::optional<StructuredOutput> structured_outputs = {};
  AnswerTextOptions text = {};
  Request engine = {};  // what needs no default; no prompt
};

const FieldTable<GenerationRequest>& generation_fields();

// The table of an endpoint's own fields with those every endpoint has.
template <typename Target>
FieldTable<Target> with_generation_fields(FieldTable<Target> own) {
  add_fields(own, generation_fields(),
             [](Target& request) -> GenerationRequest& { return request; });
  return own;
}

struct PreparedPrompt {
  std::vector<TokenId> tokens = {};
  std::string text = {};  // as it was sent, if it was text
};

// All that the engine and the text side need to answer a call.
struct GenerationJob {
  std::vector<PreparedPrompt> prompts = {};
  Request engine = {};  // for each prompt
  AnswerTextOptions text = {};
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage_stats = false;
  bool return_token_ids = false;
  bool wants_prompt_logprobs = false;
  std::string id = {};     // without "cmpl-" or "chatcmpl-"
  int call_id_length = 0;  // of tool calls' ids, as call_id() takes it
  IgnoredFields ignored = {};
};

// Defaults filled in: the call's own, then the model's, then OpenAI's. Throws RequestError: 404 for
// another model's name, 400 for fields that do not go together or a model that only embeds.
GenerationJob prepare_job(const GenerationRequest& request, const ServedModel& model,
                          int default_max_tokens);

// Cuts the prompt as truncate_prompt_tokens says.
void truncate(std::vector<TokenId>& prompt, const GenerationRequest& request,
              const ServedModel& model);
// Throws RequestError(400) naming `field` for one that is empty or too long.
void add_prompt(GenerationJob& job, PreparedPrompt prompt, const ServedModel& model,
                const std::string& field);

// Throws RequestError(404) unless `name` is empty or one of the model's.
void check_model_name(const std::string& name, const ServedModel& model);

}  // namespace octavo::api

// generation_request.h - the request fields that all generating endpoints share, and the job they
// become.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/body_fields.h"
#include "api/openai/structured_output.h"
#include "api/preparation.h"
#include "api/resume_fields.h"
#include "api/served_model.h"
#include "generation/output_text.h"
#include "scheduler/request.h"

namespace octavo::api {

inline constexpr size_t kMaxStops = 16;
inline constexpr size_t kMaxStopBytes = 1024;
inline constexpr size_t kMaxStopTokens = 1024;
inline constexpr int kMaxLogprobs = 20;

// Fields as sent; those whose default depends on the model stay empty.
struct GenerationRequest {
  std::string model = {};
  bool stream = false;
  bool has_stream_options = false;
  bool include_usage = false;           // a final chunk with the usage
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
  bool resumable = false;
  ResumeFacts resume = {};
  std::optional<std::vector<std::vector<TokenId>>> resume_tokens = {};  // prompt * n + choice
  std::string request_id = {};
  std::optional<StructuredOutput> response_format = {};
  std::optional<StructuredOutput> structured_outputs = {};
  OutputTextOptions text = {};
  Request engine = {};  // fields without model-dependent defaults; no prompt
};

const FieldTable<GenerationRequest>& generation_fields();

// Adds the shared fields to an endpoint's own.
template <typename Target>
FieldTable<Target> with_generation_fields(FieldTable<Target> own) {
  add_fields(own, generation_fields(),
             [](Target& request) -> GenerationRequest& { return request; });
  return own;
}

struct PreparedPrompt {
  std::vector<TokenId> tokens = {};
  int second_text = 0;    // Request::second_text
  std::string text = {};  // as sent, if it was text
  // Its placeholders are in `tokens`; add_prompt() sets their offsets.
  std::vector<PromptImage> images = {};

  int image_tokens() const;
};

// The output of a choice that an earlier attempt has sent.
struct ResumedChoice {
  ResumedOutput output = {};
  std::optional<FinishReason> finish = {};  // its last token ends it
  std::optional<TokenId> stop_token = {};   // as Update::stop_token
};

// Everything the engine and the text layer need to process a request.
struct GenerationJob {
  std::vector<PreparedPrompt> prompts = {};
  std::string prompts_field = "prompt";  // of the request
  Request engine = {};                   // for each prompt
  OutputTextOptions text = {};
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage_stats = false;
  bool return_token_ids = false;
  bool wants_prompt_logprobs = false;
  // Events say what a client must send to continue the answer if it is interrupted.
  bool resumable = false;
  bool resumes = false;  // has the id of an earlier answer, which it continues
  // Empty, or by prompt * n + choice: the output of that answer.
  std::vector<ResumedChoice> resumed = {};
  std::optional<int> cached_tokens = {};  // reported instead of this attempt's
  int64_t created = 0;                    // Unix seconds
  std::string id = {};                    // without "cmpl-" or "chatcmpl-"
  int call_id_length = 0;                 // length of tool call ids, for call_id()
  IgnoredFields ignored = {};

  // Whether events carry the ids of their tokens.
  bool reports_tokens() const { return return_token_ids || resumable; }
};

// Fills in defaults: the request's own value, then the model's, then OpenAI's. Throws RequestError:
// 404 for an unknown model name, 400 for conflicting fields or a model that only embeds.
GenerationJob prepare_job(const GenerationRequest& request, const ServedModel& model,
                          int default_max_tokens, const Preparation& preparation = {});

// The text of a prompt.
struct PromptText {
  std::string text = {};
  char32_t marker = 0;  // of SpecialTokenMarks
};

// Prompts that are truncated or only counted may have this many tokens; encoding takes up to 350
// bytes of memory for each.
inline constexpr size_t kCountedTokens = 256u << 10;
inline constexpr size_t kCountedContexts = 4;  // or this many times the context, if that is more

// These throw RequestError(400) naming `field`, before the text is encoded, if it clearly has more
// than `limit` tokens, or more than can be counted.
void check_length(const std::string& text, int limit, const ServedModel& model,
                  const std::string& field);
void check_countable(const std::string& text, const ServedModel& model, const std::string& field);
// For a prompt that will be truncated, or must fit the context.
std::vector<TokenId> encode_prompt(const PromptText& prompt, bool add_special_tokens,
                                   const GenerationRequest& request, const ServedModel& model,
                                   const std::string& field);
std::vector<TokenId> encode_counted(const PromptText& prompt, bool add_special_tokens,
                                    const ServedModel& model, const std::string& field);
// Truncates the prompt according to truncate_prompt_tokens.
void truncate(std::vector<TokenId>& prompt, const GenerationRequest& request,
              const ServedModel& model);
// Throws RequestError(400) naming `field` if the prompt is empty or too long.
void add_prompt(GenerationJob& job, PreparedPrompt prompt, const ServedModel& model,
                const std::string& field);

// The adapter that `name` stands for; null if it is empty or one of the model's names, where the tag
// ":latest" makes no difference. Throws RequestError(404) if it is neither.
std::shared_ptr<const Adapter> adapter_named(const std::string& name, const ServedModel& model);
// Throws as adapter_named().
void check_model_name(const std::string& name, const ServedModel& model);

}  // namespace octavo::api

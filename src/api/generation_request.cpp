#include "api/generation_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "api/images/image_placeholders.h"
#include "api/resume.h"
#include "base/error.h"

namespace octavo::api {
namespace {

// Of 53 bits, which clients that read numbers as doubles can send back.
uint64_t fresh_seed() {
  static thread_local std::random_device device;
  return ((uint64_t{device()} << 32) | device()) >> 11;
}

int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// A word is kept from coming at a text's beginning and, where that is another token, after a space.
void add_bad_word(const std::string& word, const Tokenizer& tokenizer, SamplingParams& sampling) {
  const size_t start = std::min(word.find_first_not_of(" \t\n\r"), word.size());
  const std::string bare = word.substr(start);
  const std::vector<TokenId> plain = tokenizer.encode(bare, false);
  if (plain.empty()) refuse("bad_words", "contains an empty word");
  const std::vector<TokenId> spaced = tokenizer.encode(" " + bare, false);
  sampling.bad_words.push_back(plain);
  if (spaced.size() == plain.size() && spaced.front() != plain.front())
    sampling.bad_words.push_back(spaced);
}

// Ollama's clients add the tag to names without one.
std::string_view without_latest(std::string_view name) {
  constexpr std::string_view kLatest = ":latest";
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  return name;
}

SamplingParams sampling_of(const GenerationRequest& request, const ServedModel& model) {
  const SamplingDefaults& defaults = model.defaults;
  SamplingParams sampling = request.engine.sampling;
  const auto choose = [](const auto& own, const auto& models, auto openai) {
    return own ? *own : models ? *models : openai;
  };
  sampling.temperature = choose(request.temperature, defaults.temperature, 1.0F);
  sampling.top_p = choose(request.top_p, defaults.top_p, 1.0F);
  sampling.top_k = choose(request.top_k, defaults.top_k, 0);
  sampling.min_p = choose(request.min_p, defaults.min_p, 0.0F);
  sampling.repetition_penalty =
      choose(request.repetition_penalty, defaults.repetition_penalty, 1.0F);
  const auto seed = request.seed ? request.seed : request.resume.seed;
  sampling.seed = seed ? static_cast<uint64_t>(*seed) : fresh_seed();
  for (const std::string& word : request.bad_words)
    add_bad_word(word, *model.text.tokenizer, sampling);
  return sampling;
}

std::shared_ptr<const Constraint> constraint_of(const GenerationRequest& request,
                                                const ServedModel& model,
                                                const Preparation& preparation) {
  if (request.response_format && request.structured_outputs)
    refuse("structured_outputs", "cannot be combined with response_format");
  const auto& asked =
      request.response_format ? request.response_format : request.structured_outputs;
  if (!asked) return nullptr;
  if (!model.grammars) refuse(asked->field, "structured output is not available for this model");
  return model.grammars->compile(asked->grammar, asked->field, preparation.stop);
}

}  // namespace

int PreparedPrompt::image_tokens() const {
  int rows = 0;
  for (const PromptImage& image : images) rows += image.rows();
  return rows;
}

std::shared_ptr<const Adapter> adapter_named(const std::string& name, const ServedModel& model) {
  const auto is_same = [asked = without_latest(name)](const std::string& own) {
    return without_latest(own) == asked;
  };
  if (name.empty() || std::ranges::any_of(model.names, is_same) ||
      std::ranges::any_of(model.unlisted_names, is_same))
    return nullptr;
  if (auto adapter = model.adapters ? model.adapters->find(name) : nullptr) return adapter;
  throw RequestError(
      404, "model",
      fmt::format("`{}` does not exist; this server serves `{}`", name, model.name()));
}

void check_model_name(const std::string& name, const ServedModel& model) {
  adapter_named(name, model);
}

GenerationJob prepare_job(const GenerationRequest& request, const ServedModel& model,
                          int default_max_tokens, const Preparation& preparation) {
  const std::shared_ptr<const Adapter> adapter = adapter_named(request.model, model);
  if (model.score_head)
    refuse(
        "model",
        "this server runs a model that scores texts; use /v1/rerank or /v1/score, or start it with "
        "--runner generate");
  if (model.pooling)
    refuse("model",
           "this server runs an embedding model; use /v1/embeddings, or start it with --runner "
           "generate");
  if (request.has_stream_options && !request.stream)
    refuse("stream_options", "requires stream to be true");
  check_fingerprint(request.resume, model.answer_fingerprint(adapter.get()));
  if (request.stream && request.engine.sampling.prompt_logprobs >= 0)
    refuse("prompt_logprobs", "cannot be combined with stream");
  GenerationJob job{.engine = request.engine,
                    .text = request.text,
                    .stream = request.stream,
                    .include_usage = request.include_usage,
                    .continuous_usage_stats = request.continuous_usage_stats,
                    .return_token_ids = request.return_token_ids,
                    .wants_prompt_logprobs = request.engine.sampling.prompt_logprobs >= 0,
                    .resumable = request.resumable,
                    .resumes = !request.resume.id.empty(),
                    .cached_tokens = request.resume.cached_tokens,
                    .created = request.resume.created.value_or(unix_seconds()),
                    .id = request.resume.id.empty() ? request.request_id : request.resume.id};
  job.engine.adapter = adapter;
  job.engine.sampling = sampling_of(request, model);
  preparation.check();
  job.engine.constraint = constraint_of(request, model, preparation);
  preparation.check();
  job.engine.max_tokens = request.max_tokens.value_or(default_max_tokens);
  if (request.engine.min_tokens > 0 && !request.max_tokens)
    job.engine.max_tokens = std::max(job.engine.max_tokens, request.engine.min_tokens);
  return job;
}

void check_length(const std::string& text, int limit, const ServedModel& model,
                  const std::string& field) {
  if (model.text.tokenizer->exceeds(text, static_cast<size_t>(std::max(limit, 1))))
    refuse(field, fmt::format("has more than {} tokens; at most {} fit the context of {}", limit,
                              limit, model.max_model_len));
}

void check_countable(const std::string& text, const ServedModel& model, const std::string& field) {
  const auto context = static_cast<size_t>(std::max(model.max_model_len, 1));
  const size_t limit = std::max(kCountedTokens, kCountedContexts * context);
  if (model.text.tokenizer->exceeds(text, limit))
    refuse(field,
           fmt::format("has more than {} tokens; longer texts are not encoded, since at most "
                       "{} fit the context",
                       limit, model.max_model_len));
}

std::vector<TokenId> encode_prompt(const PromptText& prompt, bool add_special_tokens,
                                   const GenerationRequest& request, const ServedModel& model,
                                   const std::string& field) {
  if (request.truncate_prompt_tokens)
    return encode_counted(prompt, add_special_tokens, model, field);
  check_length(prompt.text, model.max_model_len - 1, model, field);
  return model.text.tokenizer->encode_marked(prompt.text, prompt.marker, add_special_tokens);
}

std::vector<TokenId> encode_counted(const PromptText& prompt, bool add_special_tokens,
                                    const ServedModel& model, const std::string& field) {
  check_countable(prompt.text, model, field);
  return model.text.tokenizer->encode_marked(prompt.text, prompt.marker, add_special_tokens);
}

void truncate(std::vector<TokenId>& prompt, const GenerationRequest& request,
              const ServedModel& model) {
  if (!request.truncate_prompt_tokens) return;
  const int keep = *request.truncate_prompt_tokens < 0 ? model.max_model_len - 1
                                                       : *request.truncate_prompt_tokens;
  const auto length = static_cast<ptrdiff_t>(prompt.size());
  if (length > keep) prompt.erase(prompt.begin(), prompt.end() - keep);
}

void add_prompt(GenerationJob& job, PreparedPrompt prompt, const ServedModel& model,
                const std::string& field) {
  if (prompt.tokens.empty()) refuse(field, "is empty; send at least one token");
  // Validate every prompt here, before any of them is submitted.
  if (model.images) place_images(prompt.tokens, prompt.images, model.images->settings(), field);
  Request probe = job.engine;
  probe.prompt = std::move(prompt.tokens);
  probe.images = prompt.images;
  probe.second_text = prompt.second_text;
  try {
    validate(probe, {.max_model_len = model.max_model_len,
                     .vocab = model.vocab,
                     .max_image_tokens = model.images ? model.images->settings().max_tokens : 0,
                     .max_whole_prompt = model.max_whole_prompt});
  } catch (const RequestError& error) {
    // The engine calls the field "prompt" and starts the message with it.
    if (error.param() != "prompt") throw;
    refuse(field, std::string(error.what()).substr(std::string_view("prompt: ").size()));
  }
  prompt.tokens = std::move(probe.prompt);
  job.prompts.push_back(std::move(prompt));
}

}  // namespace octavo::api

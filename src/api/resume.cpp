#include "api/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace octavo::api {
namespace {

constexpr const char* kField = "resume_token_ids";
// How many tokens a grammar follows before it looks whether to stop.
constexpr size_t kTokensPerCheck = 64;

bool is_among(TokenId token, const std::vector<TokenId>& tokens) {
  return std::ranges::count(tokens, token) > 0;
}

// The state of the job's constraint after the tokens.
std::shared_ptr<ConstraintState> follow(const Constraint& constraint,
                                        const std::vector<TokenId>& tokens,
                                        const Preparation& preparation) {
  std::shared_ptr<ConstraintState> state;
  size_t followed = 0;
  bool fits = true;
  std::string failure;
  try {
    state = constraint.begin();
    for (; followed < tokens.size() && fits; ++followed) {
      if (followed % kTokensPerCheck == 0) preparation.check();
      fits = state->accept(tokens[followed]);
    }
  } catch (const RequestError&) {
    throw;
  } catch (const std::exception& error) {
    refuse(kField, error.what());
  }
  if (!fits)
    refuse(kField,
           fmt::format("token {} does not fit the grammar of the request", tokens[followed - 1]));
  return state;
}

ResumedChoice resumed_choice(std::vector<TokenId> tokens, int64_t most, const GenerationJob& job,
                             const ServedModel& model, const Preparation& preparation) {
  if (static_cast<int64_t>(tokens.size()) > most)
    refuse(kField, fmt::format("has {} tokens for a choice; max_tokens and the context allow {}",
                               tokens.size(), most));
  for (const TokenId token : tokens) {
    if (token >= model.vocab)
      refuse(kField,
             fmt::format("token id {} is outside the vocabulary of {}", token, model.vocab));
  }
  const auto is_own_stop = [&](TokenId token) {
    return !job.engine.ignore_eos && is_among(token, model.dialect.stop_tokens);
  };
  const auto stop = std::ranges::find_if(tokens, [&](TokenId token) {
    return is_own_stop(token) || is_among(token, job.engine.stop_token_ids);
  });
  if (stop != tokens.end() && stop + 1 != tokens.end())
    refuse(kField, fmt::format("has tokens after token {}, which ends the answer", *stop));
  ResumedChoice choice;
  if (stop != tokens.end()) {
    choice.finish = FinishReason::kStop;
    if (!is_own_stop(*stop)) choice.stop_token = *stop;
  } else if (static_cast<int64_t>(tokens.size()) == most) {
    choice.finish = FinishReason::kLength;
  } else if (job.engine.constraint && !tokens.empty()) {
    choice.output.state = follow(*job.engine.constraint, tokens, preparation);
  }
  choice.output.tokens = std::move(tokens);
  return choice;
}

}  // namespace

void check_fingerprint(const ResumeFacts& facts, const std::string& own) {
  if (facts.fingerprint.empty() || facts.fingerprint == own) return;
  throw RequestError(409, "resume.system_fingerprint",
                     fmt::format("the answer was begun with other bits than this server's ({}); "
                                 "start it again",
                                 own));
}

std::vector<TokenId> prompt_tokens(size_t index, size_t count, const GenerationRequest& request,
                                   const ServedModel& model,
                                   const std::function<std::vector<TokenId>()>& encode) {
  const auto& prompts = request.resume.prompts;
  if (prompts.empty()) {
    std::vector<TokenId> tokens = encode();
    truncate(tokens, request, model);
    return tokens;
  }
  if (prompts.size() != count)
    refuse("resume.prompt_token_ids",
           fmt::format("has {} lists, but the request has {} prompts", prompts.size(), count));
  return prompts[index];
}

void resume_outputs(GenerationJob& job, const GenerationRequest& request, const ServedModel& model,
                    const Preparation& preparation) {
  if (job.cached_tokens) {
    if (job.prompts.size() != 1 ||
        static_cast<size_t>(*job.cached_tokens) > job.prompts.front().tokens.size())
      refuse("resume.cached_tokens", "is more than the prompt has");
  }
  if (!request.resume_tokens) return;
  const auto n = static_cast<size_t>(job.engine.n);
  if (request.resume_tokens->size() != job.prompts.size() * n)
    refuse(kField, fmt::format("has {} lists; send one for each of the {} choices",
                               request.resume_tokens->size(), job.prompts.size() * n));
  const auto empty = [](const auto& list) { return list.empty(); };
  if (std::ranges::all_of(*request.resume_tokens, empty)) return;  // nothing was generated
  if (!job.stream &&
      (job.engine.sampling.logprobs >= 0 || job.engine.sampling.prompt_logprobs >= 0))
    refuse(kField, "cannot be combined with log probabilities unless the answer is streamed");
  for (size_t i = 0; i < request.resume_tokens->size(); ++i) {
    const auto prompt = static_cast<int64_t>(job.prompts[i / n].tokens.size());
    const int64_t most = std::min<int64_t>(job.engine.max_tokens, model.max_model_len - prompt);
    job.resumed.push_back(
        resumed_choice((*request.resume_tokens)[i], most, job, model, preparation));
  }
}

Json resume_json(const GenerationJob& job, const ServedModel& model, const Usage& usage) {
  Json prompts = Json::array();
  for (const PreparedPrompt& prompt : job.prompts) prompts.push_back(prompt.tokens);
  Json json = {{"id", job.id},
               {"created", job.created},
               {"seed", static_cast<int64_t>(job.engine.sampling.seed)},
               {"system_fingerprint", model.answer_fingerprint(job.engine.adapter.get())},
               {"prompt_token_ids", std::move(prompts)}};
  // Of several prompts, only the first is known to have been looked up.
  if (job.prompts.size() == 1) json["cached_tokens"] = usage.cached_tokens;
  return json;
}

std::vector<Update> single_tokens(Update update) {
  const size_t count = update.tokens.size();
  std::vector<Update> parts;
  for (size_t i = 0; i + 1 < count; ++i) {
    Update& part = parts.emplace_back(
        Update{.request = update.request, .choice = update.choice, .tokens = {update.tokens[i]}});
    if (!update.logprobs.empty()) part.logprobs = {std::move(update.logprobs[i])};
    if (!update.hashes.empty()) part.hashes = {update.hashes[i]};
    if (i > 0) continue;
    part.cached_tokens = std::exchange(update.cached_tokens, std::nullopt);
    part.cache = std::exchange(update.cache, nullptr);
    part.scheduled = update.scheduled;
    part.prompt_logprobs = std::exchange(update.prompt_logprobs, {});
  }
  if (count > 1) {
    const auto keep_last = [&](auto& list) {
      if (!list.empty()) list.erase(list.begin(), list.end() - 1);
    };
    keep_last(update.tokens);
    keep_last(update.logprobs);
    keep_last(update.hashes);
  }
  parts.push_back(std::move(update));
  return parts;
}

void EventTokens::write(std::string& out, size_t start) {
  constexpr std::string_view kEnd = "}\n\n";
  if (waiting_.empty() || out.size() == start) return;
  OCTAVO_CHECK(out.ends_with(kEnd));
  out.resize(out.size() - kEnd.size());
  out += fmt::format(",\"token_ids\":{}{}", dump(Json(waiting_)), kEnd);
  waiting_.clear();
}

}  // namespace octavo::api

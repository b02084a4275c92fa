#include "scheduler/request_shared.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/scheduler.h"
#include "scheduler/snapshot_edges.h"

namespace octavo {
namespace {

// The rules that modify logits before a draw; null if there are none.
std::shared_ptr<const LogitRules> rules_of(const RequestShared& shared,
                                           const SchedulerOptions& options) {
  const SamplingParams& params = shared.request.sampling;
  const int min_tokens = shared.request.min_tokens;
  if (!params.has_rules() && min_tokens == 0 && options.suppressed_token_ids.empty())
    return nullptr;
  LogitRules rules{.repetition_penalty = params.repetition_penalty,
                   .presence_penalty = params.presence_penalty,
                   .frequency_penalty = params.frequency_penalty,
                   .logit_bias = params.logit_bias,
                   .bad_words = params.bad_words,
                   .allowed = {},
                   .min_tokens = min_tokens,
                   .held_back = shared.stop_tokens};
  if (!params.allowed_token_ids.empty()) {
    rules.allowed.resize(static_cast<size_t>(options.vocab + 31) / 32);
    for (TokenId token : params.allowed_token_ids)
      rules.allowed[static_cast<size_t>(token) / 32] |= uint32_t{1} << (token % 32);
  }
  // Instead of the request's own biases of these tokens: each token has one.
  const auto& suppressed = options.suppressed_token_ids;
  std::erase_if(rules.logit_bias, [&](const auto& entry) {
    return std::ranges::find(suppressed, entry.first) != suppressed.end();
  });
  for (TokenId token : suppressed)
    rules.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
  return std::make_shared<const LogitRules>(std::move(rules));
}

}  // namespace

std::shared_ptr<const RequestShared> share_request(RequestId id, Request request,
                                                   const SchedulerOptions& options,
                                                   const CachePlan& plan) {
  auto shared = std::make_shared<RequestShared>();
  shared->id = id;
  shared->request = std::move(request);
  const Request& r = shared->request;
  if (!r.ignore_eos) shared->stop_tokens = options.stop_token_ids;
  shared->model_stop_tokens = shared->stop_tokens.size();
  shared->stop_tokens.insert(shared->stop_tokens.end(), r.stop_token_ids.begin(),
                             r.stop_token_ids.end());
  shared->rules = rules_of(*shared, options);
  shared->keys.space = r.cache_namespace;
  if (r.adapter) {
    shared->keys.every_block.push_back(adapter_key(r.adapter->name()));
    shared->keys.space = namespace_of_adapter(r.cache_namespace, r.adapter->digest());
  }
  for (const PromptImage& image : r.images)
    shared->keys.images.push_back({image.identifier, image.offset, image.length()});
  if (!r.cache_salt.empty()) shared->keys.first_block.push_back(salt_key(r.cache_salt));
  // Without a prefix cache, only the choices of one request share their prompt.
  if (!options.enable_prefix_caching)
    shared->keys.first_block.push_back({"request", static_cast<int64_t>(id)});
  shared->whole_prompt = options.whole_prompts;
  shared->snapshot_edges = snapshot_edges(r.prompt, options.stop_token_ids, plan);
  const auto prompt = static_cast<int64_t>(r.prompt.size());
  shared->max_length =
      static_cast<int>(std::min<int64_t>(prompt + r.max_tokens, options.max_model_len));
  // A pooling prompt may fill the whole context.
  if (r.pooling != Pooling::kNone) shared->max_length = static_cast<int>(prompt) + 1;
  return shared;
}

}  // namespace octavo

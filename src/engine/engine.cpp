#include "engine/engine.h"

#include <mlx/memory.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/system_memory.h"
#include "engine/runner.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// How the first token behind the prompt is drawn.
RowSampling row_sampling(const Request& request) {
  const SamplingParams& params = request.sampling;
  return {.temperature = params.temperature,
          .top_p = params.top_p,
          .min_p = params.min_p,
          .top_k = std::max(0, params.top_k),
          .seed = params.seed,
          .position = static_cast<uint32_t>(request.prompt.size())};
}

}  // namespace

CachePlan plan_engine_cache(const ModelDescription& model, const EngineOptions& options) {
  const int block = options.block_tokens;
  if (block < 8 || block > 4096 || block % 8 != 0) {
    throw SetupError("--block-size: must be a multiple of 8 from 8 to 4096");
  }
  return plan_cache(model.plan.cache_specs(model.dtype, options.kv_format), block);
}

MemoryPlan plan_engine_memory(const ModelDescription& model, const EngineOptions& options) {
  if (options.max_num_batched_tokens < 1) {
    throw SetupError("--max-num-batched-tokens: must be at least 1");
  }
  const MemoryRequest request{
      .device_bytes = usable_memory_bytes(),
      .memory_fraction = options.memory_fraction,
      .weights_bytes = model.weights_bytes,
      .step_bytes = step_bytes(model, options.max_num_batched_tokens, 1),
      .model_context = model.plan.max_context,
      .max_model_len = options.max_model_len,
      .kv_bytes = options.kv_bytes,
  };
  return plan_memory(request, plan_engine_cache(model, options));
}

// The sequence whose K and V stand in the pages.
struct CachedSequence {
  std::vector<TokenId> tokens;
  SequencePages pages;
};

struct Engine::Loaded {
  Loaded(const Checkpoint& checkpoint, const EngineOptions& options_in, Progress progress)
      : options(options_in),
        description(describe_model(checkpoint, options_in.dtype)),
        plan(plan_engine_memory(description, options_in)),
        source(checkpoint, std::move(progress)),
        model(description.plan, description.dtype, source),
        kv(plan_engine_cache(description, options_in), plan.page_count, KernelPath::kNative),
        runner(model, kv, KernelPath::kNative),
        pool(plan.page_count),
        cached{{}, SequencePages(kv.plan(), pool)} {
    // Weights and pages are ours and not counted by MLX; what it allocates is the step. It queues
    // no further while it holds more than this (see step_bytes).
    mx::set_memory_limit(plan.step_bytes / 2);
    mx::set_cache_limit(plan.step_bytes);
  }

  // Runs rows for `tokens` behind what is cached. Draws a token when `sampling` is given.
  std::optional<TokenId> step(std::span<const TokenId> tokens, const RowSampling* sampling) {
    const auto start = static_cast<int>(cached.tokens.size());
    // The plan gives the pool at least one context of max_model_len, which callers stay below.
    OCTAVO_CHECK(cached.pages.grow_to(start + static_cast<int>(tokens.size())));
    BatchBuilder builder(static_cast<int>(kv.plan().groups.size()));
    const int first = builder.add_sequence(tokens, start, cached.pages);
    if (sampling != nullptr)
      builder.sample_row(first + static_cast<int>(tokens.size()) - 1, *sampling);
    const auto drawn = runner.run(builder.build());
    cached.tokens.insert(cached.tokens.end(), tokens.begin(), tokens.end());
    return drawn.empty() ? std::nullopt : std::optional(drawn[0]);
  }

  bool is_stop(TokenId token) const {
    const auto& stops = description.stop_token_ids;
    return std::find(stops.begin(), stops.end(), token) != stops.end();
  }

  // Forgets all but what the prompt shares with the cached sequence; at least one prompt token
  // stays to be run.
  int reuse_prefix(std::span<const TokenId> prompt) {
    const size_t most = std::min(cached.tokens.size(), prompt.size() - 1);
    size_t same = 0;
    while (same < most && cached.tokens[same] == prompt[same]) ++same;
    cached.tokens.resize(same);
    cached.pages.shrink_to(static_cast<int>(same));
    return static_cast<int>(same);
  }

  EngineOptions options;
  ModelDescription description;
  MemoryPlan plan;
  WeightSource source;
  DecoderModel model;
  KvStore kv;
  Runner runner;
  PagePool pool;
  CachedSequence cached;
};

Engine::Engine(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress)
    : loaded_(std::make_unique<Loaded>(checkpoint, options, std::move(progress))) {}

Engine::~Engine() = default;

const ModelDescription& Engine::model() const { return loaded_->description; }
const MemoryPlan& Engine::memory() const { return loaded_->plan; }
uint64_t Engine::weights_bytes() const { return loaded_->source.loaded_bytes(); }
uint64_t Engine::step_peak_bytes() const { return mx::get_peak_memory(); }

Generation Engine::generate(const Request& request, const OnToken& on_token) {
  Loaded& l = *loaded_;
  validate(request, l.plan.max_model_len, l.description.plan.vocab);
  const auto cancelled = [&] { return request.cancelled && request.cancelled(); };
  Generation result;
  const auto started = Clock::now();
  result.cached_tokens = l.reuse_prefix(request.prompt);

  std::span<const TokenId> left =
      std::span(request.prompt).subspan(static_cast<size_t>(result.cached_tokens));
  const auto chunk = static_cast<size_t>(l.options.max_num_batched_tokens);
  for (; left.size() > chunk && !cancelled(); left = left.subspan(chunk))
    l.step(left.first(chunk), nullptr);
  if (cancelled()) {
    result.finish_reason = FinishReason::kAbort;
    result.prefill_seconds = seconds_since(started);
    return result;
  }
  RowSampling sampling = row_sampling(request);
  const TokenId first = *l.step(left, &sampling);
  result.prefill_seconds = seconds_since(started);

  const auto decoding = Clock::now();
  for (TokenId token = first;; token = *l.step(std::span(&token, 1), &sampling)) {
    result.tokens.push_back(token);
    const bool stop = !request.ignore_eos && l.is_stop(token);
    const bool wanted = stop || (on_token(token) && !cancelled());
    const auto produced = static_cast<int>(result.tokens.size());
    const bool full = produced >= request.max_tokens ||
                      static_cast<int>(request.prompt.size()) + produced >= l.plan.max_model_len;
    if (stop || !wanted || full) {
      result.finish_reason = stop      ? FinishReason::kStop
                             : !wanted ? FinishReason::kAbort
                                       : FinishReason::kLength;
      break;
    }
    ++sampling.position;
  }
  result.decode_seconds = seconds_since(decoding);
  return result;
}

}  // namespace octavo

#include "engine/plan_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "cache/disk_tier.h"
#include "distributed/cluster.h"
#include "engine/adapter_loader.h"
#include "engine/plan_vision.h"
#include "kernels/runtime/device.h"

namespace octavo {
namespace {

// Number and length of the sequences that the pool holds without --kv-memory: enough for a small
// server without taking the whole machine.
constexpr int kUsualSequences = 32;
constexpr int kUsualTokens = 2048;
// Context of a draft model without --max-model-len.
constexpr int kUsualDraftContext = 16384;

int most_drafts(const ModelDescription& model, const EngineOptions& options) {
  const SpeculativeConfig config = plan_speculation(model, options);
  return config.method == SpeculativeMethod::kNone ? 0 : config.num_speculative_tokens;
}

SpeculationOptions speculation_options(const ModelDescription& model,
                                       const EngineOptions& options) {
  return {.most_drafts = most_drafts(model, options),
          .most_rows = rows_at_once(model, options),
          .at_any_cost = options.speculate_at_any_cost};
}

CachePlan plan_cache_without_drafts(const ModelDescription& model, const EngineOptions& options,
                                    std::span<const int> cuts = {}) {
  const int block = options.block_tokens;
  if (block < 8 || block > 4096 || block % 8 != 0) {
    throw SetupError("--block-size: must be a multiple of 8 from 8 to 4096");
  }
  return plan_cache(model.plan.cache_specs(model.dtype, options.kv_format), block, cuts);
}

}  // namespace

ModelDescription describe_model(const Checkpoint& checkpoint, const EngineOptions& options) {
  const auto pooling = plan_pooling(checkpoint, options.pooling);
  const bool mtp = options.speculation.method == SpeculativeMethod::kMtp && !pooling;
  return describe_model(checkpoint, options.dtype, pooling, options.unknown_config_keys, mtp,
                        options.vision.processor_kwargs);
}

CachePlan plan_engine_cache(const ModelDescription& model, const EngineOptions& options,
                            std::span<const int> cuts) {
  CachePlan cache = plan_cache_without_drafts(model, options, cuts);
  if (cache.state) cache.state_drafts = most_drafts(model, options);
  return cache;
}

SpeculativeConfig plan_speculation(const ModelDescription& model, const EngineOptions& options) {
  SpeculativeConfig config = options.speculation;
  if (model.pooling) {
    if (config.asked && config.method != SpeculativeMethod::kNone) {
      throw SetupError(
          "--speculative-config: an embedding model generates no tokens; use "
          R"('{"method": "none"}')");
    }
    config.method = SpeculativeMethod::kNone;
  }
  // A step keeps the state after each draft token, which takes memory.
  if (!config.asked && plan_cache_without_drafts(model, options).state)
    config.method = SpeculativeMethod::kNone;
  return config;
}

void check_context(const ModelDescription& model, const EngineOptions& options) {
  if (!options.refuse_longer_context || !options.max_model_len) return;
  const int longest = std::max(model.longest_context, options.model_context.value_or(0));
  if (*options.max_model_len <= longest) return;
  throw SetupError(fmt::format(
      "--max-model-len {} is more than the model's own context of {} tokens, beyond which answers "
      "become wrong; use --max-model-len {} or less (octavo serve accepts more with "
      "--hf-overrides '{{\"max_position_embeddings\": {}}}')",
      *options.max_model_len, longest, longest, *options.max_model_len));
}

UsualLoad usual_load(const ModelDescription& model, const EngineOptions& options) {
  // The rows of two full steps.
  if (model.plan.encoder) {
    const int sequences = options.max_num_seqs;
    return {2 * sequences, (options.max_num_batched_tokens + sequences - 1) / sequences};
  }
  return {std::min(options.max_num_seqs, kUsualSequences), kUsualTokens};
}

MemoryPlan plan_engine_memory(const ModelDescription& model, const EngineOptions& options) {
  return plan_memory(memory_request(model, options), plan_engine_cache(model, options));
}

MemoryRequest memory_request(const ModelDescription& model, const EngineOptions& options,
                             std::optional<StageRange> stage) {
  check_context(model, options);
  if (options.max_num_batched_tokens < 1) {
    throw SetupError("--max-num-batched-tokens: must be at least 1");
  }
  if (options.max_num_seqs < 1) throw SetupError("--max-num-seqs: must be at least 1");
  check_adapter_options(model, options);
  const DeviceFacts device = device_facts();
  if (options.wired_bytes) check_wired_limit(device, *options.wired_bytes);
  const bool on_gpu = device.kind == DeviceKind::kMetal;
  const auto draft = plan_draft(model, options);
  const int logit_rows = std::min(options.max_num_batched_tokens, kLogitRows);
  const int model_context = options.model_context.value_or(model.plan.max_context);
  const ImagePlan images =
      plan_images(model, options, options.max_model_len.value_or(model_context));
  MemoryRequest request{
      .device_bytes = device_memory(device, usable_memory_bytes()),
      .memory_fraction = options.memory_fraction,
      .limit_bytes = options.memory_limit,
      .weights_bytes = images.tower_bytes +
                       (stage ? model.weights.of_stage(model.plan, *stage) : model.weights_bytes),
      .draft_bytes = draft ? draft->bytes() : 0,
      .adapter_bytes = planned_adapter_bytes(model, options),
      .image_bytes = images.kept_bytes + images.encoder_bytes,
      .step_bytes = step_bytes(model, options.max_num_batched_tokens, logit_rows, stage) +
                    adapter_step_bytes(planned_adapter_rows(model, options),
                                       options.max_num_batched_tokens, logit_rows) +
                    bytes_ahead(model, options, stage),
      .serves_requests = options.serves_requests,
      .model_context = model_context,
      .max_model_len = options.max_model_len,
      .kv_bytes = options.kv_bytes,
      .step_tokens = options.max_num_batched_tokens,
      .usual_sequences = usual_load(model, options).sequences,
      .usual_tokens = usual_load(model, options).tokens,
  };
  if (options.prefix_disk)
    request.disk_bytes = 2 * static_cast<uint64_t>(model.ranks) *
                         disk_staging_bytes(plan_engine_cache(model, options));
  if (on_gpu) {
    request.device_note = "recommended by Metal as the maximum";
    request.buffer_bytes = device.buffer_bytes;
  }
  return request;
}

std::optional<DraftPlan> plan_draft(const ModelDescription& model, const EngineOptions& options) {
  const SpeculativeConfig config = plan_speculation(model, options);
  if (config.method != SpeculativeMethod::kDraftModel) return std::nullopt;
  DraftPlan plan;
  plan.checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(config.model));
  plan.model =
      describe_model(*plan.checkpoint, options.dtype, std::nullopt, options.unknown_config_keys);
  plan.cache = plan_cache_without_drafts(plan.model, options);
  if (plan.cache.state) {
    throw SetupError(fmt::format(
        "--speculative-config: {} has recurrent layers, which are not supported in a draft model; "
        "choose another one",
        config.model));
  }
  if (plan.model.plan.vocab != model.plan.vocab) {
    throw SetupError(fmt::format(
        "--speculative-config: {} has a vocabulary of {} tokens, the model one of {}; choose a "
        "draft model of the same family",
        config.model, plan.model.plan.vocab, model.plan.vocab));
  }
  plan.step_rows = options.max_num_batched_tokens;
  plan.sequences = options.max_num_seqs;
  const int longest =
      std::min(plan.model.plan.max_context, options.max_model_len.value_or(kUsualDraftContext));
  const int usual = std::min(options.max_num_seqs, kUsualSequences) *
                    plan.cache.pages_held(std::min(longest, kUsualTokens), plan.step_rows);
  plan.page_count = std::max(usual, plan.cache.pages_held(longest, plan.step_rows));
  // All drafts of a step are queued at once.
  const int rows_ahead = plan.sequences * config.num_speculative_tokens;
  plan.step_bytes = step_bytes(plan.model, plan.step_rows, std::min(plan.step_rows, kLogitRows)) +
                    static_cast<uint64_t>(rows_ahead) * row_bytes(plan.model);
  return plan;
}

// A decode step is queued while another still runs; drafts use the rows of absent sequences.
int rows_at_once(const ModelDescription& model, const EngineOptions& options) {
  return std::min(options.max_num_seqs + most_drafts(model, options),
                  options.max_num_batched_tokens);
}

uint64_t bytes_ahead(const ModelDescription& model, const EngineOptions& options,
                     std::optional<StageRange> stage) {
  const int rows = rows_at_once(model, options);
  return static_cast<uint64_t>(rows) * row_bytes(model, stage) +
         adapter_bytes_at_once(planned_adapter_rows(model, options), rows);
}

SchedulerOptions plan_scheduler(const ModelDescription& model, const EngineOptions& options,
                                const MemoryPlan& memory) {
  return {.max_num_seqs = options.max_num_seqs,
          .max_num_batched_tokens = options.max_num_batched_tokens,
          .max_model_len = memory.max_model_len,
          .vocab = model.plan.vocab,
          .draws = !model.pooling.has_value(),
          .stop_token_ids = {model.stop_token_ids.begin(), model.stop_token_ids.end()},
          .suppressed_token_ids = {model.suppressed_token_ids.begin(),
                                   model.suppressed_token_ids.end()},
          .policy = options.scheduling_policy,
          .mask_threads = std::clamp(compute_pool().threads() / 4, 1, 4),
          .enable_prefix_caching = options.enable_prefix_caching,
          .speculation = speculation_options(model, options),
          .predicts = model.plan.mtp.has_value(),
          .adapter_slots = options.adapters ? options.adapters->max_loras : 0,
          .images = plan_image_scheduling(model, options, memory.max_model_len),
          .whole_prompts = model.plan.encoder.has_value(),
          .pipeline_stages =
              options.cluster != nullptr && !options.tensor_parallel ? options.cluster->size() : 1};
}

}  // namespace octavo

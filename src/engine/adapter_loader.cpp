#include "engine/adapter_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/engine_adapter.h"
#include "engine/plan_engine.h"
#include "kernels/lora.h"
#include "kernels/runtime/device.h"
#include "models/adapters/lora_weights.h"
#include "models/adapters/metal_support.h"

namespace octavo {

AdapterLoader::AdapterLoader(const ModelDescription& model, const AdapterOptions& options)
    : model_(model), options_(options), targets_(planned_adapter_targets(model, options)) {}

std::shared_ptr<const Adapter> AdapterLoader::load(const std::string& name,
                                                   const std::string& folder, bool replaces) {
  const std::lock_guard lock(mutex_);
  if (*open_ >= options_.max_cpu_loras + (replaces ? 1 : 0))
    throw SetupError(
        fmt::format("{} adapters are loaded or still used by requests, which is the limit; unload "
                    "one, or raise --max-cpu-loras",
                    open_->load()));
  LoraWeights weights = read_lora(folder, model_.plan, targets_,
                                  {.max_rank = options_.max_lora_rank, .dtype = model_.dtype});
  if (device_facts().kind == DeviceKind::kMetal) check_metal_serves(weights, targets_);
  return std::make_shared<const EngineAdapter>(++last_id_, name, std::move(weights), open_);
}

AdapterTargets planned_adapter_targets(const ModelDescription& model,
                                       const AdapterOptions& options) {
  return adapter_targets(model.plan,
                         options.experts ? AdaptedExperts::kAll : AdaptedExperts::kNone);
}

void check_adapter_options(const ModelDescription& model, const EngineOptions& options) {
  if (!options.adapters) return;
  const AdapterOptions& lora = *options.adapters;
  if (lora.max_lora_rank < 1 || lora.max_lora_rank > kMostLoraRank)
    throw SetupError(fmt::format("--max-lora-rank: must be from 1 to {}", kMostLoraRank));
  if (lora.max_loras < 1) throw SetupError("--max-loras: must be at least 1");
  if (lora.max_cpu_loras < lora.max_loras)
    throw SetupError("--max-cpu-loras: must be at least --max-loras");
  if (lora.experts &&
      std::ranges::none_of(model.plan.layers, [](const LayerPlan& layer) { return layer.moe(); }))
    throw SetupError("--lora-experts: this model has no experts; remove the flag");
  if (lora.experts && device_facts().kind == DeviceKind::kMetal)
    throw SetupError(
        "--lora-experts: LoRA on experts is not supported on Metal; add --device cpu, or remove "
        "the flag");
  if (plan_speculation(model, options).method == SpeculativeMethod::kDraftModel)
    throw SetupError(
        "--enable-lora does not combine with a draft model, which has no adapters; use "
        R"(--speculative-config '{"method": "ngram"}')");
}

uint64_t planned_adapter_bytes(const ModelDescription& model, const EngineOptions& options) {
  if (!options.adapters) return 0;
  const AdapterOptions& lora = *options.adapters;
  const AdapterTargets targets = planned_adapter_targets(model, lora);
  const bool on_gpu = device_facts().kind == DeviceKind::kMetal;
  // One more while an adapter is replaced.
  return adapter_bytes(targets, model.dtype, lora.max_loras + lora.max_cpu_loras + 1,
                       lora.max_lora_rank) +
         largest_lora_file(targets, lora.max_lora_rank) +
         (on_gpu ? 0
                 : adapter_scratch_bytes(targets, options.max_num_batched_tokens, lora.max_loras,
                                         lora.max_lora_rank));
}

AdapterRowBytes planned_adapter_rows(const ModelDescription& model, const EngineOptions& options) {
  if (!options.adapters || device_facts().kind != DeviceKind::kMetal) return {};
  return adapter_row_bytes(planned_adapter_targets(model, *options.adapters),
                           options.adapters->max_lora_rank);
}

}  // namespace octavo

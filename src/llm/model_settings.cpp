#include "llm/model_settings.h"

#include <nlohmann/json.hpp>

#include "api/images/image_settings.h"
#include "base/error.h"
#include "base/units.h"
#include "llm/fingerprint.h"
#include "llm/image_limits.h"

namespace octavo {

EngineOptions ModelSettings::engine_options() const {
  EngineOptions options;
  options.device = parse_device(device, "--device");
  if (dtype != "auto") options.dtype = parse_dtype(dtype, "--dtype");
  if (strict_config) options.unknown_config_keys = UnknownKeys::kRefuse;
  if (kv_cache_dtype == "int8") options.kv_format = KvFormat::kInt8;
  options.block_tokens = block_size;
  if (max_model_len > 0) options.max_model_len = max_model_len;
  options.refuse_longer_context = true;
  if (!kv_memory.empty()) options.kv_bytes = parse_bytes(kv_memory, "--kv-memory");
  options.memory_fraction = memory_fraction;
  if (!memory_limit.empty()) options.memory_limit = parse_bytes(memory_limit, "--memory-limit");
  if (!wired_limit.empty()) options.wired_bytes = parse_bytes(wired_limit, "--wired-limit");
  options.merge_adapter = merge_adapter;
  options.max_num_batched_tokens = max_num_batched_tokens;
  options.batched_tokens_given = batched_tokens_given;
  options.max_num_seqs = max_num_seqs;
  if (scheduling_policy == "priority") options.scheduling_policy = SchedulingPolicy::kPriority;
  options.enable_prefix_caching = enable_prefix_caching;
  options.prefix_caching_given = prefix_caching_given;
  if (!speculative_config.empty())
    options.speculation = parse_speculative_config(speculative_config);
  options.vision = {
      .max_image_tokens = image_max_tokens,
      .kept_bytes = static_cast<uint64_t>(mm_processor_cache_gb * static_cast<double>(1ull << 30)),
      .processor_kwargs = checked_processor_kwargs(mm_processor_kwargs),
      .enabled = max_images() > 0};
  if (!prefix_disk.empty()) {
    options.prefix_disk = {.path = prefix_disk,
                           .bytes = parse_bytes(prefix_disk_size, "--prefix-disk-size"),
                           .fingerprint = page_source_fingerprint(model)};
  }
  return options;
}

int ModelSettings::max_images() const {
  return limit_mm_per_prompt.empty() ? api::kMaxImages : parse_image_limit(limit_mm_per_prompt);
}

PoolingOptions PoolingSettings::options() const {
  return {.runner = runner == "auto"       ? RunnerKind::kAuto
                    : runner == "generate" ? RunnerKind::kGenerate
                                           : RunnerKind::kPooling,
          .pooler_config = pooler_config,
          .hf_overrides = hf_overrides};
}

std::optional<int> PoolingSettings::model_context() const {
  if (hf_overrides.empty()) return std::nullopt;
  const auto json = nlohmann::json::parse(hf_overrides, nullptr, false);
  if (!json.is_object() || !json.contains("max_position_embeddings")) return std::nullopt;
  const auto& value = json.at("max_position_embeddings");
  if (!value.is_number_integer() || value < 1 || value > (1 << 28))
    throw SetupError("--hf-overrides: max_position_embeddings must be a number of tokens");
  return value.get<int>();
}

}  // namespace octavo

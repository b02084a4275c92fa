#include "llm/model_settings.h"

#include "base/units.h"
#include "llm/fingerprint.h"

namespace octavo {

EngineOptions ModelSettings::engine_options() const {
  EngineOptions options;
  options.device = parse_device(device, "--device");
  if (dtype != "auto") options.dtype = parse_dtype(dtype, "--dtype");
  if (kv_cache_dtype == "int8") options.kv_format = KvFormat::kInt8;
  options.block_tokens = block_size;
  if (max_model_len > 0) options.max_model_len = max_model_len;
  if (!kv_memory.empty()) options.kv_bytes = parse_bytes(kv_memory, "--kv-memory");
  options.memory_fraction = memory_fraction;
  if (!wired_limit.empty()) options.wired_bytes = parse_bytes(wired_limit, "--wired-limit");
  options.max_num_batched_tokens = max_num_batched_tokens;
  options.max_num_seqs = max_num_seqs;
  if (scheduling_policy == "priority") options.scheduling_policy = SchedulingPolicy::kPriority;
  options.enable_prefix_caching = enable_prefix_caching;
  if (!speculative_config.empty())
    options.speculation = parse_speculative_config(speculative_config);
  if (!prefix_disk.empty()) {
    options.prefix_disk = {.path = prefix_disk,
                           .bytes = parse_bytes(prefix_disk_size, "--prefix-disk-size"),
                           .fingerprint = page_source_fingerprint(model)};
  }
  return options;
}

PoolingOptions PoolingSettings::options() const {
  return {.runner = runner == "auto"       ? RunnerKind::kAuto
                    : runner == "generate" ? RunnerKind::kGenerate
                                           : RunnerKind::kPooling,
          .pooler_config = pooler_config,
          .hf_overrides = hf_overrides};
}

}  // namespace octavo

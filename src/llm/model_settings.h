// model_settings.h - how a model is loaded and run, with the names of `octavo serve`'s flags.
#pragma once

#include <optional>
#include <string>

#include "base/compute_pool.h"
#include "engine/engine_options.h"

namespace octavo {

struct ModelSettings {
  std::string model;  // a path
  std::string name;   // as the user gave it, if that is not a path
  std::string device = "auto";
  std::string dtype = "auto";
  bool strict_config = false;
  std::string chat_template;  // a file; empty: the model's own
  std::string merge_adapter;  // a folder; empty: none
  std::string kv_cache_dtype = "auto";
  int block_size = 32;
  int max_model_len = 0;  // 0: the largest that fits
  std::string kv_memory;
  double memory_fraction = 0.9;
  std::string memory_limit;  // empty: memory_fraction alone
  std::string wired_limit;
  int max_num_batched_tokens = 512;
  bool batched_tokens_given = false;  // the user chose it
  int max_num_seqs = 64;
  std::string scheduling_policy = "fcfs";
  bool enable_prefix_caching = true;
  bool prefix_caching_given = false;  // the user chose it
  std::string speculative_config;     // empty: prompt lookup if the model supports it
  std::string prefix_disk;
  std::string prefix_disk_size = "20GiB";
  std::string limit_mm_per_prompt;      // a JSON object; empty: the default
  std::string mm_processor_kwargs;      // a JSON object; empty: as the model's files say
  int image_max_tokens = 4096;          // of one image
  double mm_processor_cache_gb = 0.25;  // GiB of encoded images
  int threads = 0;                      // 0: all that this process may use
  bool pin_threads = false;

  // Throws SetupError that names the flag.
  EngineOptions engine_options() const;
  // Of one request. Throws SetupError.
  int max_images() const;
  ComputeOptions compute_options() const { return {.threads = threads, .pinned = pin_threads}; }
};

struct PoolingSettings {
  std::string runner = "auto";
  std::string pooler_config;
  std::string hf_overrides;

  PoolingOptions options() const;
  // The max_position_embeddings of hf_overrides. Throws SetupError if it is not a number of tokens.
  std::optional<int> model_context() const;
};

}  // namespace octavo

// model_flags.h - the flags every command that loads a model shares, under vLLM's names.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "llm/llm.h"

namespace octavo {

struct ModelFlags {
  std::string model;  // a path once find() has been called
  std::string name;   // as it was given; set by find() when it was no path
  std::string device = "auto";
  std::string dtype = "auto";
  std::string kv_cache_dtype = "auto";
  int block_size = 32;
  int max_model_len = 0;  // 0: the largest that fits
  std::string kv_memory;
  double memory_fraction = 0.9;
  std::string wired_limit;
  int max_num_batched_tokens = 512;
  int max_num_seqs = 64;
  std::string scheduling_policy = "fcfs";
  bool enable_prefix_caching = true;
  std::string speculative_config;  // empty: prompt lookup where the model allows it
  std::string prefix_disk;
  std::string prefix_disk_size = "20GiB";
  int threads = 0;  // 0: as many as this process may use
  bool pin_threads = false;

  void add_to(CLI::App& command);
  // For commands that answer many at once.
  void add_batch_flags_to(CLI::App& command);
  // For commands whose prompts come again another day.
  void add_disk_flags_to(CLI::App& command);

  // First of all: turns the model's name into its path, downloading it if it is nowhere here.
  void find();

  EngineOptions engine_options() const;
  // For one answer at a time: pages become resident as they are used.
  EngineOptions options_for_one() const;
  // Loads the model with a progress bar.
  std::unique_ptr<Llm> load(const EngineOptions& options) const;
};

struct SamplingFlags {
  float temperature = 0;
  float top_p = 1;
  int top_k = 0;
  float min_p = 0;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  std::optional<uint64_t> seed;

  void add_to(CLI::App& command);
  // Without --seed: a fresh one, so that two runs at temperature 1 differ.
  SamplingParams params() const;
};

}  // namespace octavo

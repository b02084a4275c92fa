// model_flags.h - flags shared by the commands that load a model, with vLLM's names.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/distributed/cluster_flags.h"
#include "distributed/cluster.h"
#include "llm/llm.h"
#include "llm/model_settings.h"

namespace octavo {

struct ModelFlags : ModelSettings {
  std::string quantization;  // empty: not given
  ClusterFlags cluster;

  // Called with "download" or "load" and the bytes so far and in total. Any thread. May be empty.
  std::function<void(const char* stage, uint64_t done, uint64_t total)> on_progress;

  void add_to(CLI::App& command);
  // All of these flags, without the positional MODEL.
  void add_settings_to(CLI::App& command);
  // For commands that run several sequences at once.
  void add_batch_flags_to(CLI::App& command);
  // For commands that profit from a prefix cache kept across runs.
  void add_disk_flags_to(CLI::App& command);
  // How images of prompts are read.
  void add_image_flags_to(CLI::App& command);
  // MODEL and those flags that are about a machine, for the ranks of a cluster after the first.
  void add_worker_flags_to(CLI::App& command);

  // Replaces the model's name by its path and downloads the model if it is not on this machine.
  // Call before the functions below.
  void find();
  // Also resolves the name of a draft model.
  EngineOptions engine_options() const;
  // For one sequence at a time: pages become resident when they are first used.
  EngineOptions options_for_one() const;
  // Waits until the workers of --pipeline-parallel-size or --tensor-parallel-size have joined. Null
  // without them. `say` is called with what to do; empty: it is printed on stderr.
  std::unique_ptr<Cluster> form_cluster(
      const std::function<void(const std::string&)>& say = nullptr) const;
  // Sets the number of compute threads and loads the model with a progress bar.
  std::unique_ptr<Llm> load(const EngineOptions& options) const;

 private:
  // Throws SetupError if --quantization names another one than the file's.
  void check_quantization(const ModelDescription& description) const;
  void add_memory_flags(CLI::App& command);
  void add_compute_flags(CLI::App& command);
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
  // Without --seed, uses a random seed, so that two runs at temperature 1 differ.
  SamplingParams params() const;
};

// Whether and how a server computes embeddings.
struct PoolingFlags : PoolingSettings {
  void add_to(CLI::App& command);
};

}  // namespace octavo

// model_flags.h - the flags every command that loads a model shares, under vLLM's names.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "llm/llm.h"
#include "llm/model_settings.h"

namespace octavo {

struct ModelFlags : ModelSettings {
  void add_to(CLI::App& command);
  // For commands that answer many at once.
  void add_batch_flags_to(CLI::App& command);
  // For commands whose prompts come again another day.
  void add_disk_flags_to(CLI::App& command);

  // First of all: turns the model's name into its path, downloading it if it is nowhere here.
  void find();
  // A draft model's name too.
  EngineOptions engine_options() const;
  // For one answer at a time: pages become resident as they are used.
  EngineOptions options_for_one() const;
  // Loads the model with a progress bar, on the threads that were asked for.
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

// lora_weights.h - reads and checks a LoRA adapter. No MLX. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/sha256.h"
#include "models/adapters/adapter_targets.h"
#include "models/adapters/lora_use.h"

namespace octavo {

// The matrices of one module, in the dtype of LoraLimits.
struct LoraModule {
  std::string name;  // AdapterTargets::modules
  int rank = 0;
  float scale = 0;
  bool is_transposed = false;  // mlx-lm's form, or PEFT's of embeddings
  bool changes_head = false;   // embeddings that are also the output matrix: both
  // [rank, inputs] or [inputs, rank], and [outputs, rank] or [rank, outputs]; of a stack
  // (AdapterModule::experts), one per expert, not transposed.
  std::vector<std::byte> a = {};
  std::vector<std::byte> b = {};
  std::vector<std::byte> magnitude = {};  // [outputs] of DoRA; empty: LoRA
};

struct LoraWeights {
  DType dtype = DType::kFloat32;
  std::vector<LoraModule> modules = {};
  Sha256Digest digest = {};  // of the adapter's files
};

struct LoraLimits {
  int max_rank = 0;  // of kServe: --max-lora-rank
  DType dtype = DType::kFloat32;
  LoraUse use = LoraUse::kServe;
};

// `folder` has adapter_config.json and adapter_model.safetensors (PEFT) or adapters.safetensors
// (mlx-lm). Throws SetupError that names the file and what is wrong with it: everything in the files
// must be known, and fit the model.
LoraWeights read_lora(const std::filesystem::path& folder, const DecoderPlan& plan,
                      const AdapterTargets& targets, const LoraLimits& limits);

// The largest file of tensors that read_lora() accepts.
uint64_t largest_lora_file(const AdapterTargets& targets, int max_rank);

}  // namespace octavo

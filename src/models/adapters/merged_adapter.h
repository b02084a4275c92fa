// merged_adapter.h - a LoRA or DoRA adapter that becomes part of the weights while they are loaded
// (--merge-adapter). No MLX. One thread at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/types/weight_format.h"
#include "models/adapters/lora_weights.h"

namespace octavo {

class MergedAdapter {
 public:
  // Throws SetupError as read_lora() does.
  MergedAdapter(const std::filesystem::path& folder, const DecoderPlan& plan);
  MergedAdapter(const MergedAdapter&) = delete;
  MergedAdapter& operator=(const MergedAdapter&) = delete;

  const Sha256Digest& digest() const { return weights_.digest; }

  // Whether the adapter changes the rows `order` (empty: all) of a module, by its full name in Hugging
  // Face's checkpoint.
  bool changes(const std::string& module, std::span<const int> order) const;
  // The changed rows in that order, in the matrix's dtype: row r is row order[r] of the matrix, merged.
  // The matrix is dense. Throws SetupError if a number is not finite.
  std::vector<std::byte> merge(const std::string& module, const WeightView& matrix,
                               std::span<const int> order);
  // Throws SetupError if a module of the adapter was not merged.
  void check_complete() const;

 private:
  struct Change {
    const LoraModule* lora;
    const std::vector<int>* rows;  // AdapterModule::Part::order
  };
  // Null if the adapter does not change it.
  const Change* find(const std::string& module, std::span<const int> order) const;

  AdapterTargets targets_;
  LoraWeights weights_;
  std::map<int, Change> changes_;  // by projection
  std::set<const Change*> merged_;
};

}  // namespace octavo

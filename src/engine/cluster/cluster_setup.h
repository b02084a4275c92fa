// cluster_setup.h - what rank 0 tells another rank before it loads, as JSON. No MLX.
#pragma once

#include <string>
#include <vector>

#include "distributed/step_message.h"
#include "engine/engine_options.h"
#include "engine/pipeline/plan_stages.h"

namespace octavo {

struct ClusterSetup {
  bool tensor = false;         // every rank has a part of the outputs of all layers
  std::vector<int> cuts = {};  // otherwise: the first layers of ranks above 0
  int page_count = 0;
  int max_model_len = 0;
  DType dtype = DType::kBFloat16;
  KvFormat kv_format = KvFormat::kPlain;
  int block_tokens = 32;
  int max_num_seqs = 64;
  int max_num_batched_tokens = 512;
  bool predicts = false;  // with the multi-token prediction layer
  int most_drafts = 0;
  PoolingOptions pooling = {};
  std::string model_digest = {};  // hexadecimal
  std::string arithmetic = {};    // arithmetic_name()
  std::string merged = {};        // digest of the files of --merge-adapter; empty: none

  std::string to_json() const;
  // Throws SetupError.
  static ClusterSetup from_json(const std::string& json);

  // The options of this setup, with what is about the machine from `own`.
  EngineOptions options(const EngineOptions& own) const;
  StageRange stage(size_t rank, const DecoderPlan& plan) const;
};

// Of the steps of such a cluster.
StepLimits step_limits(const CachePlan& cache, const ClusterSetup& setup, int vocab);

std::string hex_of(const Sha256Digest& digest);

}  // namespace octavo

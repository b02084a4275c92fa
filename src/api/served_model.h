// served_model.h - the model that a server serves: its engine, its text layer and its metadata. No
// MLX.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/adapters.h"
#include "api/images/image_reader.h"
#include "api/request_memory.h"
#include "api/sampling_defaults.h"
#include "generation/chat_dialect.h"
#include "generation/grammar_compiler.h"
#include "generation/model_text.h"
#include "kernels/types/pooling_plan.h"
#include "kernels/types/score_head.h"
#include "scheduler/engine_client.h"

namespace octavo {
class DiskTier;
}

namespace octavo::api {

struct MemoryRow {
  std::string name;  // "weights"
  uint64_t bytes;
};

// What Ollama's API tells about a model; nothing else depends on it.
struct ModelFacts {
  std::string container = {};     // "gguf", "safetensors"
  std::string family = {};        // "llama"
  std::string quantization = {};  // "Q4_K", "BF16"
  uint64_t parameters = 0;
  uint64_t file_bytes = 0;
  bool on_gpu = false;
};

struct ServedModel {
  EngineClient& engine;
  ModelText text;
  std::shared_ptr<GrammarCompiler> grammars = nullptr;  // null: no structured output
  ChatDialect dialect = {};
  std::vector<std::string> names;  // as /v1/models lists them; answers carry the first
  std::vector<std::string> unlisted_names = {};  // accepted in requests besides
  std::string root;                              // the path it was loaded from
  int64_t created = 0;                           // Unix seconds
  int max_model_len = 0;
  int vocab = 0;
  int max_num_seqs = 1;
  int block_tokens = 0;
  bool enable_prefix_caching = true;
  // Changes whenever output bits may change: model files, data types, kernels.
  std::string fingerprint;
  SamplingDefaults defaults = {};
  std::optional<PoolingPlan> pooling = {};                // set: the model only embeds or scores
  std::shared_ptr<const ScoreHead> score_head = nullptr;  // set: it scores
  int max_whole_prompt = 0;                               // RequestLimits::max_whole_prompt
  int hidden = 0;                                         // dimensions of an embedding
  std::vector<MemoryRow> memory = {};                     // rows of the memory plan
  ModelFacts facts = {};
  RequestMemory request_memory = {};  // limits of what requests hold outside the engine
  std::shared_ptr<AdapterRegistry> adapters = nullptr;  // null: LoRA is off
  DiskTier* disk = nullptr;                             // of the prefix cache; null: none

  // Null: the model takes no images, and `images_refused` says why.
  std::shared_ptr<const ImageReader> images = nullptr;
  std::string images_refused = "this model takes no images; send text only";

  const std::string& name() const { return names.front(); }
  // Tokens of the longest prompt that the model can pool.
  int longest_pooled() const {
    return max_whole_prompt > 0 ? std::min(max_whole_prompt, max_model_len) : max_model_len;
  }
  // What an answer is called and fingerprinted by; `adapter` may be null.
  const std::string& answer_name(const Adapter* adapter) const {
    return adapter != nullptr ? adapter->name() : name();
  }
  std::string answer_fingerprint(const Adapter* adapter) const;
};

}  // namespace octavo::api

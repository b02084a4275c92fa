// adapter_targets.h - the projections of a model that LoRA adapters may change, and the modules of
// adapter files that change them. No MLX.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/adapters/lora_use.h"
#include "models/decoder_plan.h"

namespace octavo {

// A projection as a layer multiplies by it.
struct AdaptedProjection {
  int inputs = 0;
  int outputs = 0;
  int experts = 1;  // that have one each; the adapter's slot of expert e is slot * experts + e
  int top_k = 1;    // of these, used by one row
};

// A linear module of the checkpoint, which an adapter file names.
struct AdapterModule {
  struct Part {
    int projection = 0;           // index into AdapterTargets::projections
    std::vector<int> order = {};  // its row r is row order[r] of the module; empty: all, in order
    int expert = 0;               // of the projection
  };
  int inputs = 0;
  int outputs = 0;
  std::vector<Part> parts = {};
  // The embeddings, a matrix [vocabulary, hidden]: A and B of an adapter file change places.
  bool is_table = false;
  // > 0: mlx-lm's stack of so many experts, the parts: A is [experts, rank, inputs], B [experts, outputs,
  // rank].
  int experts = 0;
};

// Indices of a layer's projections; -1 or empty: an adapter cannot change them.
struct LayerTargets {
  std::vector<int> qkv = {};  // as Attention joins them
  int output = -1;
  int gate = -1;  // of the dense MLP or of the shared expert, as are up and down
  int up = -1;
  int down = -1;
  int router = -1;
  int shared_gate = -1;  // which scales the shared expert
  int expert_gate = -1;
  int expert_up = -1;
  int expert_down = -1;
};

// Whether adapters may change the experts of a mixture.
enum class AdaptedExperts : uint8_t {
  kNone,
  kAll,  // --lora-experts
};

inline constexpr const char* kHeadModule = "lm_head";

struct AdapterTargets {
  AdaptedExperts experts = AdaptedExperts::kNone;
  std::vector<AdaptedProjection> projections = {};
  std::vector<LayerTargets> layers = {};
  int embedding = -1;
  int head = -1;  // -1: an adapter cannot change it; that of `embedding` if they are one matrix
  // By name in Hugging Face's checkpoint, without the model's prefix: "layers.3.self_attn.q_proj".
  std::map<std::string, AdapterModule> modules = {};
  std::string prefix = {};          // of the model's own tensors, with a dot: "model."
  std::string embedding_name = {};  // in `modules`
  std::string head_name = {};       // in the checkpoint; its name in `modules` is kHeadModule

  // The name of a module in `modules`, from its full name in an adapter file; empty if the prefix is
  // unknown.
  std::string local_name(const std::string& full_name) const;
};

AdapterTargets adapter_targets(const DecoderPlan& plan,
                               AdaptedExperts experts = AdaptedExperts::kNone);

// Why an adapter cannot change this module (a local name that `modules` of the targets does not have).
std::string why_not_adapted(const DecoderPlan& plan, const AdapterTargets& targets,
                            const std::string& module, LoraUse use);

// Memory of `slots` adapters of up to `max_rank`, in the layout of the kernels.
uint64_t adapter_bytes(const AdapterTargets& targets, DType dtype, int slots, int max_rank);
// Largest scratch memory of a step's products with adapters, besides that of the products.
uint64_t adapter_scratch_bytes(const AdapterTargets& targets, int tokens, int slots, int max_rank);

}  // namespace octavo

// adapter_row_bytes.h - memory that LoRA adapters add to the steps of a model on Metal, where A x and
// B (A x) are arrays between kernels. On the CPU they are scratch memory (adapter_scratch_bytes). No MLX.
#pragma once

#include <cstdint>

#include "models/adapters/adapter_targets.h"

namespace octavo {

// Bytes per row of a step.
struct AdapterRowBytes {
  uint64_t widest_layer = 0;
  uint64_t all_layers = 0;
  uint64_t head = 0;    // per row with logits
  uint64_t tables = 0;  // of each launch's rows by slot, which the layers share
};

AdapterRowBytes adapter_row_bytes(const AdapterTargets& targets, int max_rank);

// What adapters add to step_bytes().
uint64_t adapter_step_bytes(const AdapterRowBytes& row, int tokens, int logit_rows);
// What they add to a step whose layers are all queued at once, besides its logits.
uint64_t adapter_bytes_at_once(const AdapterRowBytes& row, int tokens);

}  // namespace octavo

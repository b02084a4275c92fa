// machine_plan.h - divides the machine's memory among the processes of a front. No MLX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "front/child_status.h"

namespace octavo::front {

// Of the front process itself: connections, bodies and buffers.
inline constexpr uint64_t kFrontReserveBytes = 256ull << 20;

// What all models together may take.
uint64_t models_budget(uint64_t usable_bytes, double memory_fraction);

// The limits that a model's process is started with.
struct ModelMemory {
  uint64_t limit_bytes = 0;  // --memory-limit: all that it takes
  uint64_t kv_bytes = 0;     // --kv-memory
};

struct KvRule {
  double share = 0.2;     // of the budget, at most
  bool is_given = false;  // --kv-memory was given: the plan has it already
};

// `plan` is the model's alone on this machine. Its KV cache becomes smaller to fit into its share
// and, with the rest of the model, into the budget, but not so small that it cannot work: the
// result may exceed the budget.
ModelMemory plan_model_memory(const ChildPlan& plan, uint64_t budget_bytes, const KvRule& rule);

// Differs if a file of the model differs in name, size or time of change.
std::string files_key(const std::filesystem::path& path);

}  // namespace octavo::front

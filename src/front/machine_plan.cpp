#include "front/machine_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "cache/memory_plan.h"
#include "hub/model_file.h"

namespace octavo::front {
namespace {

namespace fs = std::filesystem;

std::string file_key(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  const auto time = fs::last_write_time(path, error);
  return fmt::format("{}:{}:{};", path.string(), size,
                     static_cast<int64_t>(time.time_since_epoch().count()));
}

}  // namespace

uint64_t models_budget(uint64_t usable_bytes, double memory_fraction) {
  const auto budget = static_cast<uint64_t>(static_cast<double>(usable_bytes) * memory_fraction);
  return budget - std::min(budget, kFrontReserveBytes);
}

ModelMemory plan_model_memory(const ChildPlan& plan, uint64_t budget_bytes, const KvRule& rule) {
  uint64_t kv = plan.kv_bytes;
  if (!rule.is_given) {
    const auto share = static_cast<uint64_t>(static_cast<double>(budget_bytes) * rule.share);
    kv = std::min(kv, share);
    const uint64_t whole = server_budget_for(plan.fixed_bytes + kv);
    if (whole > budget_bytes) kv -= std::min(kv, whole - budget_bytes);
    kv = std::max(kv, plan.least_kv_bytes);
  }
  return {.limit_bytes = server_budget_for(plan.fixed_bytes + kv), .kv_bytes = kv};
}

std::string files_key(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return file_key(path);
  std::string key;
  for (const ModelFile& file : files_in(path)) key += file_key(path / file.path);
  return key;
}

}  // namespace octavo::front

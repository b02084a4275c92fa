#include "models/families/mamba_keys.h"

#include <fmt/format.h>

#include "kernels/types/state_geometry.h"

namespace octavo {
namespace {

int mamba_dim(const Config& config, const char* key) {
  const int dim = config.integer(key);
  if (dim % kStateDimStep != 0 || dim > kLargestStateDim) {
    config.fail(key, fmt::format("is {}; sizes of a Mamba-2 state must be a multiple of {}, at "
                                 "most {}",
                                 dim, kStateDimStep, kLargestStateDim));
  }
  return dim;
}

// [0, infinity], where infinity is null or transformers' {"__float__": "Infinity"}: read_json
// replaces Python's Infinity, which is not JSON.
bool has_no_limit(const nlohmann::json& limit) {
  if (!limit.is_array() || limit.size() != 2 || limit[0] != 0.0) return false;
  const auto& most = limit[1];
  return most.is_null() ||
         (most.is_object() && most.value("__float__", nlohmann::json()) == "Infinity");
}

}  // namespace

Mamba2Plan plan_mamba2(const Config& config, const MambaKeys& keys) {
  if (const auto* limit = config.find("time_step_limit"); limit != nullptr && !has_no_limit(*limit))
    config.fail("time_step_limit", "limits the time step, which is not supported");
  Mamba2Plan plan;
  plan.heads = config.integer(keys.heads, 1, 4096);
  plan.head_dim = mamba_dim(config, keys.head_dim);
  plan.groups = config.integer_or(keys.groups, 1, 1, 4096);
  if (plan.heads % plan.groups != 0) {
    config.fail(keys.groups,
                fmt::format("is {}, which does not divide {} heads", plan.groups, plan.heads));
  }
  plan.state_dim = mamba_dim(config, keys.state_dim);
  plan.conv_kernel = config.integer_or(keys.conv_kernel, 4, 2, kLargestConvRows + 1);
  plan.conv_bias = config.boolean_or(keys.conv_bias, true);
  plan.bias = config.boolean_or(keys.bias, false);
  return plan;
}

}  // namespace octavo

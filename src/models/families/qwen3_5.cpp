// Qwen3.5 and later, dense or with experts: a hybrid whose delta layers have separate projections
// for q, k and v, for the gate, and for the two parameters of each head. Positions have three axes.
#include <cstdint>
#include <optional>
#include <vector>

#include "models/families/families.h"
#include "models/families/qwen_hybrid.h"

namespace octavo {
namespace {

// The pairs of time, height and width take turns, until the section of height or width ends.
std::vector<int32_t> rope_axes(const Config& config, size_t pairs) {
  constexpr const char* kKey = "mrope_section";
  std::vector<int> sections = {11, 11, 10};
  std::optional<Config> rope = config.object("rope_parameters");
  if (!rope) rope = config.object("rope_scaling");
  if (rope && rope->has(kKey)) {
    sections = rope->integers(kKey);
    if (sections.size() != 3) rope->fail(kKey, "is not a list of three numbers");
  }
  std::vector<int32_t> axes;
  for (size_t i = 0; i < pairs; ++i) {
    const size_t axis = i % 3;
    axes.push_back(static_cast<int64_t>(i / 3) < sections[axis] ? static_cast<int32_t>(axis) : 0);
  }
  return axes;
}

}  // namespace

DecoderPlan plan_qwen3_5(const Config& config) {
  DecoderPlan plan = plan_qwen_hybrid(config, "qwen3_5");
  for (RopePlan& rope : plan.ropes) rope.axes = rope_axes(config, rope.inverse_frequencies.size());
  return plan;
}

}  // namespace octavo

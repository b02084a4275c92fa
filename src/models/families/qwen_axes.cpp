#include "models/families/qwen_axes.h"

#include <optional>

namespace octavo {

// The pairs of time, height and width take turns, until the section of height or width ends.
std::vector<int32_t> qwen_rope_axes(const Config& config, size_t pairs, std::vector<int> sections) {
  constexpr const char* kKey = "mrope_section";
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

}  // namespace octavo

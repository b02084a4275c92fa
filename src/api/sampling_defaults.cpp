#include "api/sampling_defaults.h"

#include <fmt/format.h>

namespace octavo::api {

std::string SamplingDefaults::describe() const {
  std::string text = fmt::format("temperature {:.4g}", temperature.value_or(1));
  const auto add = [&](const char* name, const auto& value) {
    if (value) text += fmt::format(", {} {:.4g}", name, static_cast<double>(*value));
  };
  add("top_p", top_p);
  add("top_k", top_k);
  add("min_p", min_p);
  add("repetition_penalty", repetition_penalty);
  return text;
}

}  // namespace octavo::api

// sampling_defaults.h - sampling parameters of requests that do not set them. No MLX.
#pragma once

#include <optional>
#include <string>

namespace octavo::api {

// Fields of the request take precedence; unset fields have OpenAI's values (temperature 1).
struct SamplingDefaults {
  std::optional<float> temperature = {};
  std::optional<float> top_p = {};
  std::optional<int> top_k = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition_penalty = {};

  bool empty() const { return !temperature && !top_p && !top_k && !min_p && !repetition_penalty; }
  // "temperature 0.7, top_p 0.95, min_p 0.05"
  std::string describe() const;
};

// For models whose files say nothing about sampling. tools/measure_sampling.py compares them with
// other programs' defaults; docs/server.md has the figures.
inline constexpr SamplingDefaults kOctavoSampling{
    .temperature = 0.7F, .top_p = 0.95F, .min_p = 0.05F};

}  // namespace octavo::api

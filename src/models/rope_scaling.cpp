#include "models/rope_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/portable_math.h"

namespace octavo {
namespace {

// Wavelengths divided by 2 pi, in float32 as the checkpoints were trained: base^(2i/dims).
std::vector<double> periods(double base, int dims) {
  std::vector<double> result;
  for (int i = 0; i < dims; i += 2) {
    result.push_back(portable_pow(base, static_cast<double>(i) / dims));
  }
  return result;
}

// The context before scaling: by default the model's own, as in transformers.
double original_context(const Config& scaling, const Config& config) {
  const double context = config.positive_or("max_position_embeddings", 2048);
  return scaling.positive_or("original_max_position_embeddings", context);
}

void scale_llama3(std::vector<double>& period, const Config& scaling, double original) {
  const double factor = scaling.positive("factor");
  const double low = scaling.positive_or("low_freq_factor", 1);
  const double high = scaling.positive_or("high_freq_factor", 4);
  if (high <= low)
    scaling.fail("high_freq_factor",
                 fmt::format("is {}; it must be above low_freq_factor {}", high, low));
  for (double& p : period) {
    const double wavelength = 2 * std::numbers::pi * p;
    if (wavelength > original / low) {
      p *= factor;
    } else if (wavelength > original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      p /= (1 - smooth) / factor + smooth;
    }
  }
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * portable_log(factor) + 1;
}

void scale_yarn(std::vector<double>& period, const Config& scaling, double original, double base,
                int dims, RopePlan& plan) {
  constexpr double kMostMscale = 1000;  // so that the square of a magnitude is finite
  const double factor = scaling.positive("factor");
  auto dimension_of = [&](double rotations) {
    return dims * portable_log(original / (rotations * 2 * std::numbers::pi)) /
           (2 * portable_log(base));
  };
  double low = dimension_of(scaling.positive_or("beta_fast", 32));
  double high = dimension_of(scaling.positive_or("beta_slow", 1));
  if (scaling.boolean_or("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(0.0, low);
  high = std::min(dims - 1.0, high);
  if (low == high) high += 0.001;  // avoids division by zero in the ramp
  for (size_t i = 0; i < period.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double frequency = (1 - stretched) / period[i] + stretched / (period[i] * factor);
    period[i] = 1 / frequency;
  }
  const double of_all =
      yarn_magnitude(factor, scaling.number_or("mscale_all_dim", 0, 0, kMostMscale));
  const double rotated = yarn_magnitude(factor, scaling.number_or("mscale", 1, 0, kMostMscale));
  plan.magnitude = static_cast<float>(scaling.positive_or("attention_factor", rotated / of_all));
  plan.score_scale = static_cast<float>(of_all * of_all);
}

void divide_by_factors(std::vector<double>& period, const Config& scaling, const char* key) {
  const nlohmann::json* factors = scaling.find(key);
  if (factors == nullptr || !factors->is_array() || factors->size() != period.size())
    scaling.fail(key, fmt::format("is not a list of {} numbers", period.size()));
  for (size_t i = 0; i < period.size(); ++i) {
    if (!(*factors)[i].is_number()) scaling.fail(key, "is not a list of numbers");
    const auto factor = (*factors)[i].get<double>();
    if (!(factor >= Config::kSmallest && factor <= Config::kLargest))
      scaling.fail(key, fmt::format("has the factor {}; factors must be above 0", factor));
    period[i] *= factor;
  }
}

// Always uses the long factors, as mlx-lm does: cached keys cannot be rotated again when a sequence
// grows past the original context.
float scale_longrope(std::vector<double>& period, const Config& scaling, const Config& config) {
  divide_by_factors(period, scaling, "long_factor");
  if (scaling.has("attention_factor"))
    return static_cast<float>(scaling.positive("attention_factor"));
  constexpr const char* kOriginal = "original_max_position_embeddings";
  const double original =
      scaling.has(kOriginal) ? scaling.number(kOriginal) : config.number_or(kOriginal, 4096);
  if (original <= 1) config.fail(kOriginal, "must be above 1");
  const double extended = config.number_or("max_position_embeddings", 131072) / original;
  const double factor = scaling.positive_or("factor", extended);
  return factor <= 1
             ? 1
             : static_cast<float>(std::sqrt(1 + portable_log(factor) / portable_log(original)));
}

// Only the first pairs are rotated, with the frequencies of a whole head; the others have frequency
// 0.
void scale_proportional(std::vector<double>& period, const Config& scaling, int dims) {
  const double part = scaling.number_or("partial_rotary_factor", 1);
  if (part <= 0 || part > 1) scaling.fail("partial_rotary_factor", "is not between 0 and 1");
  const auto turning = static_cast<size_t>(static_cast<int>(dims * part) / 2);
  for (size_t i = 0; i < period.size(); ++i)
    period[i] = i < turning ? period[i] * scaling.positive_or("factor", 1) : HUGE_VAL;
}

RopePlan make_rope(double base, int dims, const std::optional<Config>& scaling,
                   const Config& config) {
  if (base <= 1) config.fail("rope_theta", "must be above 1");
  std::vector<double> period = periods(base, dims);
  RopePlan plan;
  const std::string type =
      scaling ? scaling->text_or("rope_type", scaling->text_or("type", "default")) : "default";
  if (type == "linear") {
    for (double& p : period) p *= scaling->positive("factor");
  } else if (type == "llama3") {
    scale_llama3(period, *scaling, original_context(*scaling, config));
  } else if (type == "yarn" || type == "deepseek_yarn") {
    scale_yarn(period, *scaling, original_context(*scaling, config), base, dims, plan);
  } else if (type == "longrope" || type == "su") {
    plan.magnitude = scale_longrope(period, *scaling, config);
  } else if (type == "proportional") {
    scale_proportional(period, *scaling, dims);
  } else if (type == "factors") {
    divide_by_factors(period, *scaling, "factors");
  } else if (type != "default") {
    scaling->fail(
        "rope_type",
        fmt::format("is \"{}\"; supported types: default, linear, llama3, yarn, longrope, "
                    "proportional",
                    type));
  }
  for (double p : period) plan.inverse_frequencies.push_back(static_cast<float>(1 / p));
  return plan;
}

}  // namespace

RopePlan plan_rope(const Config& config, int dims) {
  std::optional<Config> scaling = config.object("rope_parameters");
  const double of_model = config.number_or("rope_theta", 10000);
  const double base = scaling ? scaling->number_or("rope_theta", of_model) : of_model;
  if (!scaling) scaling = config.object("rope_scaling");
  return make_rope(base, dims, scaling, config);
}

RopePlan plan_rope_of(const Config& config, const std::string& kind, int dims,
                      const RopeFallback& fallback) {
  const std::optional<Config> by_kind = config.object("rope_parameters");
  const std::optional<Config> own = by_kind ? by_kind->object(kind) : std::nullopt;
  if (!own) return make_rope(fallback.theta, dims, fallback.scaling, config);
  return make_rope(own->number_or("rope_theta", fallback.theta), dims, own, config);
}

}  // namespace octavo

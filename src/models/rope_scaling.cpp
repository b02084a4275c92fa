#include "models/rope_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace octavo {
namespace {

// Wavelengths divided by 2 pi, in float32 as the checkpoints were trained: base^(2i/dims).
std::vector<double> periods(double base, int dims) {
  std::vector<double> result;
  for (int i = 0; i < dims; i += 2) {
    result.push_back(std::pow(base, static_cast<double>(i) / dims));
  }
  return result;
}

void scale_llama3(std::vector<double>& period, const Config& scaling) {
  const double factor = scaling.number("factor");
  const double low = scaling.number_or("low_freq_factor", 1);
  const double high = scaling.number_or("high_freq_factor", 4);
  const double original = scaling.number_or("original_max_position_embeddings", 8192);
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
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

float scale_yarn(std::vector<double>& period, const Config& scaling, double base, int dims) {
  const double factor = scaling.number("factor");
  const double original = scaling.number_or("original_max_position_embeddings", 4096);
  auto dimension_of = [&](double rotations) {
    return dims * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(dimension_of(scaling.number_or("beta_fast", 32))));
  double high = std::min(dims - 1.0, std::ceil(dimension_of(scaling.number_or("beta_slow", 1))));
  if (low == high) high += 0.001;  // a ramp needs a width
  for (size_t i = 0; i < period.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double frequency = (1 - stretched) / period[i] + stretched / (period[i] * factor);
    period[i] = 1 / frequency;
  }
  if (scaling.has("attention_factor"))
    return static_cast<float>(scaling.number("attention_factor"));
  return static_cast<float>(yarn_magnitude(factor, scaling.number_or("mscale", 1)) /
                            yarn_magnitude(factor, scaling.number_or("mscale_all_dim", 0)));
}

// The list under `key`, one factor for each period.
std::vector<double> factors_of(const Config& scaling, const char* key, size_t count) {
  std::vector<double> factors;
  if (scaling.has(key) && scaling.json().at(key).is_array()) {
    for (const auto& factor : scaling.json().at(key)) {
      if (!factor.is_number()) scaling.fail(key, "holds something that is no number");
      factors.push_back(factor.get<double>());
    }
  }
  if (factors.size() != count)
    scaling.fail(key, fmt::format("has {} entries, expected {}", factors.size(), count));
  return factors;
}

void multiply(std::vector<double>& period, const std::vector<double>& factors) {
  for (size_t i = 0; i < period.size(); ++i) period[i] *= factors[i];
}

// LongRoPE has factors for short and for long contexts. A context that outgrows the original one
// would change the angles of all its earlier tokens, so only one set of factors can be honoured.
float scale_longrope(std::vector<double>& period, const Config& scaling, double max_context) {
  const auto factors = factors_of(scaling, "long_factor", period.size());
  if (factors_of(scaling, "short_factor", period.size()) != factors) {
    scaling.fail("short_factor",
                 "differs from long_factor; factors that change with the length of the context are "
                 "not supported");
  }
  multiply(period, factors);
  const double original = scaling.number_or("original_max_position_embeddings", 4096);
  const double growth = max_context / original;
  return growth <= 1 ? 1 : static_cast<float>(std::sqrt(1 + std::log(growth) / std::log(original)));
}

}  // namespace

RopePlan plan_rope(const Config& config, int dims) {
  std::optional<Config> scaling = config.object("rope_parameters");
  const double base = scaling && scaling->has("rope_theta") ? scaling->number("rope_theta")
                                                            : config.number_or("rope_theta", 10000);
  if (base <= 1) config.fail("rope_theta", "must be above 1");
  if (!scaling) scaling = config.object("rope_scaling");
  std::vector<double> period = periods(base, dims);
  RopePlan plan;
  if (scaling) {
    const std::string type = scaling->text_or("rope_type", scaling->text_or("type", "default"));
    if (type == "linear") {
      for (double& p : period) p *= scaling->number("factor");
    } else if (type == "llama3") {
      scale_llama3(period, *scaling);
    } else if (type == "yarn") {
      plan.magnitude = scale_yarn(period, *scaling, base, dims);
    } else if (type == "factors") {
      multiply(period, factors_of(*scaling, "factors", period.size()));
    } else if (type == "longrope") {
      plan.magnitude =
          scale_longrope(period, *scaling, config.number_or("max_position_embeddings", 2048));
    } else if (type != "default") {
      scaling->fail(
          "rope_type",
          fmt::format("is \"{}\"; known are default, linear, llama3, longrope, yarn", type));
    }
  }
  for (double p : period) plan.inverse_frequencies.push_back(static_cast<float>(1 / p));
  return plan;
}

}  // namespace octavo

#include "kernels/types/score_head.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "base/portable_math.h"

namespace octavo {
namespace {

// Eight sums of every eighth product, in double, then their sum: one order on every machine.
float dot(std::span<const float> a, const float* b) {
  constexpr size_t kSums = 8;
  std::array<double, kSums> sums = {};
  const size_t whole = a.size() / kSums * kSums;
  for (size_t i = 0; i < whole; i += kSums) {
    for (size_t k = 0; k < kSums; ++k)
      sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
  }
  for (size_t i = whole; i < a.size(); ++i)
    sums[i - whole] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  double total = 0;
  for (const double sum : sums) total += sum;
  return static_cast<float>(total);
}

std::vector<float> multiply(const ScoreHead::Matrix& matrix, std::span<const float> x) {
  const auto columns = static_cast<size_t>(matrix.columns);
  OCTAVO_CHECK(x.size() == columns);
  std::vector<float> out;
  for (size_t row = 0; row < static_cast<size_t>(matrix.rows); ++row) {
    const float product = dot(x, matrix.weight.data() + row * columns);
    out.push_back(matrix.bias.empty() ? product : product + matrix.bias[row]);
  }
  return out;
}

float activate(ScoreActivation kind, float x) {
  const auto wide = static_cast<double>(x);
  switch (kind) {
    case ScoreActivation::kNone:
      return x;
    case ScoreActivation::kTanh:
      return static_cast<float>(2 * portable_sigmoid(2 * wide) - 1);
    case ScoreActivation::kGelu:
      return static_cast<float>(wide * (1 + std::erf(wide / std::numbers::sqrt2)) / 2);
    case ScoreActivation::kRelu:
      return x > 0 ? x : 0;
    case ScoreActivation::kSilu:
      return static_cast<float>(wide * portable_sigmoid(wide));
  }
  return x;
}

void normalize(const ScoreHead::LayerNorm& norm, std::vector<float>& x) {
  OCTAVO_CHECK(x.size() == norm.weight.size());
  const auto count = static_cast<double>(x.size());
  double sum = 0;
  for (const float each : x) sum += static_cast<double>(each);
  const double mean = sum / count;
  double squares = 0;
  for (const float each : x) {
    const double off = static_cast<double>(each) - mean;
    squares += off * off;
  }
  const double factor = 1 / std::sqrt(squares / count + static_cast<double>(norm.eps));
  for (size_t i = 0; i < x.size(); ++i) {
    double y = (static_cast<double>(x[i]) - mean) * factor * static_cast<double>(norm.weight[i]);
    if (!norm.bias.empty()) y += static_cast<double>(norm.bias[i]);
    x[i] = static_cast<float>(y);
  }
}

void check_shape(const ScoreHead::Matrix& matrix) {
  OCTAVO_CHECK(matrix.rows > 0 && matrix.columns > 0);
  const auto rows = static_cast<size_t>(matrix.rows);
  OCTAVO_CHECK(matrix.weight.size() == rows * static_cast<size_t>(matrix.columns));
  OCTAVO_CHECK(matrix.bias.empty() || matrix.bias.size() == rows);
}

}  // namespace

ScoreHead::ScoreHead(Layers layers) : layers_(std::move(layers)) {
  if (layers_.dense) check_shape(*layers_.dense);
  check_shape(layers_.out);
}

std::vector<float> ScoreHead::logits(std::span<const float> pooled) const {
  std::vector<float> x(pooled.begin(), pooled.end());
  if (layers_.dense) x = multiply(*layers_.dense, x);
  for (float& each : x) each = activate(layers_.activation, each);
  if (layers_.norm) normalize(*layers_.norm, x);
  return multiply(layers_.out, x);
}

}  // namespace octavo

#include "kernels/cpu/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {
namespace {

struct Candidate {
  int32_t token;
  float logit;    // divided by the temperature
  double weight;  // exp(logit - max)
};

// Likelier first; the lower id wins a tie.
bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Tokens that min_p and the logits themselves leave, in id order.
std::vector<Candidate> candidates(std::span<const float> logits, const RowSampling& sampling,
                                  float max) {
  const float floor =
      sampling.min_p > 0 ? max + std::log(sampling.min_p) : -std::numeric_limits<float>::infinity();
  std::vector<Candidate> kept;
  kept.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i] / sampling.temperature;
    if (logit >= floor && std::isfinite(logit)) kept.push_back({static_cast<int32_t>(i), logit, 0});
  }
  return kept;
}

void keep_top_k(std::vector<Candidate>& kept, int32_t top_k) {
  if (top_k <= 0 || static_cast<size_t>(top_k) >= kept.size()) return;
  std::nth_element(kept.begin(), kept.begin() + top_k - 1, kept.end(), likelier);
  kept.resize(static_cast<size_t>(top_k));
}

// The smallest set of likeliest tokens whose probability reaches top_p; at least one.
void keep_top_p(std::vector<Candidate>& kept, float top_p) {
  if (top_p >= 1) return;
  std::sort(kept.begin(), kept.end(), likelier);
  double total = 0;
  for (const auto& c : kept) total += c.weight;
  double sum = 0;
  size_t count = 0;
  while (count < kept.size() && (count == 0 || sum < top_p * total)) sum += kept[count++].weight;
  kept.resize(count);
}

}  // namespace

int32_t sample_row(std::span<const float> logits, const RowSampling& sampling) {
  const auto best =
      static_cast<int32_t>(kernels().argmax(logits.data(), static_cast<int64_t>(logits.size())));
  if (sampling.temperature <= 0) return best;
  const float max = logits[static_cast<size_t>(best)] / sampling.temperature;
  if (!std::isfinite(max)) return best;
  std::vector<Candidate> kept = candidates(logits, sampling, max);
  keep_top_k(kept, sampling.top_k);
  for (auto& c : kept) c.weight = std::exp(static_cast<double>(c.logit - max));
  keep_top_p(kept, sampling.top_p);

  // Inverse of the cumulative distribution in id order, so that the way the cuts were made leaves
  // no trace.
  std::sort(kept.begin(), kept.end(),
            [](const auto& a, const auto& b) { return a.token < b.token; });
  double total = 0;
  for (const auto& c : kept) total += c.weight;
  double left = token_uniform(sampling.seed, sampling.choice, sampling.position) * total;
  for (const auto& c : kept) {
    left -= c.weight;
    if (left < 0) return c.token;
  }
  return kept.empty() ? best : kept.back().token;
}

}  // namespace octavo::cpu

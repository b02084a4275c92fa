#include "kernels/cpu/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kTokensPerPiece = 16;

// The indices of the `wanted` largest of `keys`, ascending; of equal ones the lower index. NaN is
// last.
void pick_largest(std::span<const float> keys, std::span<int32_t> picked) {
  const auto key = [&](int32_t i) {
    const float value = keys[static_cast<size_t>(i)];
    return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
  };
  // Sorted by descending key: most candidates are rejected by comparison with the last one.
  size_t held = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(keys.size()); ++i) {
    if (held == picked.size() && !(key(i) > key(picked[held - 1]))) continue;
    size_t place = held < picked.size() ? held++ : held - 1;
    for (; place > 0 && key(i) > key(picked[place - 1]); --place) picked[place] = picked[place - 1];
    picked[place] = i;
  }
  std::sort(picked.begin(), picked.end());
}

// One thread's working memory, reused for all its tokens.
class Router {
 public:
  explicit Router(const RoutingArgs& args)
      : args_(args),
        choice_(args.choice),
        scores_(static_cast<size_t>(choice_.experts)),
        keys_(scores_.size()),
        group_keys_(static_cast<size_t>(choice_.groups)),
        kept_groups_(static_cast<size_t>(choice_.top_groups)) {}

  void route(int64_t token) {
    const float* logits = args_.logits + token * choice_.experts;
    if (choice_.score == ExpertScore::kSoftmaxOfChosen) {
      std::copy_n(logits, scores_.size(), scores_.begin());
    } else {
      kernels().expert_scores(logits, choice_.experts, choice_.score, scores_.data());
    }
    for (size_t e = 0; e < keys_.size(); ++e)
      keys_[e] = args_.bias != nullptr ? scores_[e] + args_.bias[e] : scores_[e];
    if (choice_.top_groups < choice_.groups) leave_out_groups();
    const auto top_k = static_cast<size_t>(choice_.top_k);
    const std::span ids(args_.ids + token * choice_.top_k, top_k);
    pick_largest(keys_, ids);
    weigh(ids, std::span(args_.weights + token * choice_.top_k, top_k));
  }

 private:
  float group_key(std::span<const float> keys) const {
    float first = -std::numeric_limits<float>::infinity(), second = first;
    for (const float key : keys) {
      if (key > first) {
        second = first;
        first = key;
      } else if (key > second) {
        second = key;
      }
    }
    return choice_.group_score == GroupScore::kBest ? first : first + second;
  }

  // Experts outside the best groups compete with 0, as in the models' own code: they are selected
  // only if the others' scores are negative.
  void leave_out_groups() {
    const size_t size = keys_.size() / group_keys_.size();
    for (size_t g = 0; g < group_keys_.size(); ++g)
      group_keys_[g] = group_key(std::span(keys_).subspan(g * size, size));
    pick_largest(group_keys_, kept_groups_);
    for (size_t g = 0; g < group_keys_.size(); ++g) {
      if (!std::binary_search(kept_groups_.begin(), kept_groups_.end(), static_cast<int32_t>(g)))
        std::fill_n(keys_.begin() + static_cast<std::ptrdiff_t>(g * size), size, 0.0f);
    }
  }

  void weigh(std::span<const int32_t> ids, std::span<float> weights) const {
    for (size_t j = 0; j < ids.size(); ++j) weights[j] = scores_[static_cast<size_t>(ids[j])];
    if (choice_.score == ExpertScore::kSoftmaxOfChosen)
      kernels().expert_scores(weights.data(), choice_.top_k, ExpertScore::kSoftmax, weights.data());
    if (choice_.renormalize) {
      float total = 0;
      for (const float weight : weights) total += weight;
      for (float& weight : weights) weight /= total + choice_.renormalize_eps;
    }
    for (size_t j = 0; j < ids.size(); ++j) {
      weights[j] *= choice_.scale;
      if (args_.expert_scales != nullptr)
        weights[j] *= args_.expert_scales[static_cast<size_t>(ids[j])];
    }
  }

  const RoutingArgs& args_;
  const ExpertChoice& choice_;
  std::vector<float> scores_;
  std::vector<float> keys_;  // for selecting experts
  std::vector<float> group_keys_;
  std::vector<int32_t> kept_groups_;
};

}  // namespace

void route_experts(const RoutingArgs& args) {
  compute_pool().parallel_for(args.tokens, kTokensPerPiece, [&](int64_t begin, int64_t end) {
    prepare_thread();
    Router router(args);
    for (int64_t token = begin; token < end; ++token) router.route(token);
  });
}

}  // namespace octavo::cpu

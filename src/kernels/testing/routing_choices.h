// routing_choices.h - for tests: every way to select experts.
#pragma once

#include <vector>

#include "kernels/expert_routing.h"
#include "kernels/testing/support.h"

namespace octavo {

inline mx::array row_of(std::vector<float> values) {
  return mx::array(values.begin(), {1, static_cast<int>(values.size())}, mx::float32);
}

// Fewer experts than lanes and more, groups of few and many.
inline std::vector<ExpertChoice> every_choice() {
  std::vector<ExpertChoice> choices;
  for (const int experts : {24, 40}) {
    for (auto score :
         {ExpertScore::kSoftmax, ExpertScore::kSigmoid, ExpertScore::kSoftmaxOfChosen}) {
      for (bool renormalize : {false, true}) {
        choices.push_back({.experts = experts,
                           .top_k = 5,
                           .score = score,
                           .renormalize = renormalize,
                           .scale = 2.5f});
      }
    }
  }
  struct Groups {
    int experts, groups, top_groups;
  };
  for (const Groups& groups : {Groups{24, 6, 2}, Groups{72, 36, 7}}) {
    for (auto group : {GroupScore::kTopTwo, GroupScore::kBest}) {
      for (auto score : {ExpertScore::kSoftmax, ExpertScore::kSigmoid}) {
        choices.push_back({.experts = groups.experts,
                           .top_k = 4,
                           .score = score,
                           .groups = groups.groups,
                           .top_groups = groups.top_groups,
                           .group_score = group,
                           .renormalize = true});
      }
    }
  }
  choices.push_back({.experts = 24,
                     .top_k = 4,
                     .score = ExpertScore::kSigmoid,
                     .renormalize = true,
                     .renormalize_eps = 0.5f});
  choices.push_back({.experts = 1, .top_k = 1});
  choices.push_back({.experts = 130, .top_k = 130});
  choices.push_back({.experts = 512, .top_k = 10, .renormalize = true});
  return choices;
}

}  // namespace octavo

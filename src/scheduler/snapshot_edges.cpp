#include "scheduler/snapshot_edges.h"

#include <algorithm>

namespace octavo {

std::vector<int> snapshot_edges(std::span<const TokenId> prompt,
                                std::span<const TokenId> stop_tokens, const CachePlan& plan) {
  if (!plan.state) return {};
  std::vector<int> borders;
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (std::ranges::count(stop_tokens, prompt[i]) > 0) borders.push_back(static_cast<int>(i) + 1);
  }
  if (borders.size() > 3) borders.erase(borders.begin() + 1, borders.end() - 2);
  // The last token's row must always run.
  borders.push_back(static_cast<int>(prompt.size()) - 1);
  const int page = plan.common_tokens();
  for (int& border : borders) border = border / page * page;
  std::ranges::sort(borders);
  borders.erase(std::ranges::unique(borders).begin(), borders.end());
  std::erase(borders, 0);
  return borders;
}

}  // namespace octavo

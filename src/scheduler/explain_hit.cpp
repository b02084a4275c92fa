#include "scheduler/explain_hit.h"

#include <algorithm>
#include <functional>
#include <string>

namespace octavo {

PromptHistory::Owner owner_of(const Sequence& sequence) {
  const Request& request = sequence.request();
  return {request.owner, request.cache_salt, request.adapter ? request.adapter->id() : 0};
}

std::span<const TokenId> history_tokens(const Sequence& sequence, std::vector<TokenId>& room) {
  if (sequence.request().images.empty()) return sequence.tokens();
  room.assign(sequence.tokens().begin(), sequence.tokens().end());
  for (const PromptImage& image : sequence.request().images) {
    const auto mark = static_cast<TokenId>(std::hash<std::string>()(image.identifier) & 0x3FFFFFFF);
    std::fill_n(room.begin() + image.offset, image.length(), -1 - mark);
  }
  return room;
}

CacheReport explain_hit(Sequence& sequence, int hit, bool enabled, const PromptHistory& history,
                        const CachePlan& plan) {
  std::vector<TokenId> room;
  const auto prompt = history_tokens(sequence, room);
  const int limit = sequence.reuse_limit();
  CacheReport report{.prompt = static_cast<int>(prompt.size()), .hit = hit};
  if (sequence.memory_tokens >= 0) report.disk = std::max(0, hit - sequence.memory_tokens);
  if (!enabled) {
    report.misses = {CacheMiss::kOff};
    return report;
  }
  if (limit < report.prompt - 1) {
    report.misses = {CacheMiss::kLogprobs};
    return report;
  }
  const auto match = history.closest(prompt, owner_of(sequence));
  const int page = plan.common_tokens();
  const int known = std::min(match.common, limit) / page * page;
  if (hit < known) {
    const int pages = plan.state ? sequence.hit_of_pages() : hit;
    report.lost = known - hit;
    if (pages > hit) report.misses.push_back(CacheMiss::kSnapshot);
    if (pages < known) report.misses.push_back(CacheMiss::kEvicted);
  }
  if (match.common >= limit) {
    if (std::max(hit, known) < limit) report.misses.push_back(CacheMiss::kBlock);
  } else if (hit > match.common || match.ended) {
    const bool new_salt = !match.known && hit == 0 && !sequence.request().cache_salt.empty();
    report.misses.push_back(new_salt ? CacheMiss::kSalt : CacheMiss::kNew);
    report.at = std::max(hit, match.common);
  } else {
    report.misses.push_back(CacheMiss::kDiffers);
    report.at = match.common;
  }
  return report;
}

}  // namespace octavo

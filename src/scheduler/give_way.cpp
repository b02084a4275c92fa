#include "scheduler/give_way.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace octavo {

std::vector<Sequence*> giving_way(const Sequence& waiting, std::span<Sequence* const> running,
                                  size_t before) {
  std::unordered_map<uint64_t, int> of_call;
  std::unordered_map<std::string_view, int> of_owner;
  const bool background = waiting.request().background;
  for (const Sequence* sequence : running) {
    if (sequence->request().background != background) continue;
    ++of_call[sequence->call()];
    ++of_owner[sequence->request().owner];
  }
  const bool new_call = !of_call.contains(waiting.call());
  const bool new_owner = !of_owner.contains(waiting.request().owner);
  std::vector<Sequence*> found;
  for (size_t i = running.size(); i > before; --i) {
    Sequence* sequence = running[i - 1];
    if (sequence->request().background && !background) {
      found.push_back(sequence);
      continue;
    }
    if (!new_call) break;
    int& in_call = of_call[sequence->call()];
    int& in_owner = of_owner[sequence->request().owner];
    // Every recomputation yields at least one token.
    if (sequence->recomputes || (in_call == 1 && !(new_owner && in_owner > 1))) continue;
    --in_call;
    --in_owner;
    found.push_back(sequence);
  }
  return found;
}

int pages_held_only_by(std::span<Sequence* const> sequences, const PagePool& pool) {
  std::unordered_map<PageId, int> held;
  const auto count = [&](std::span<const PageId> pages) {
    for (const PageId page : pages)
      if (page != kNoPage) ++held[page];
  };
  for (Sequence* sequence : sequences) {
    const SequencePages& pages = sequence->cache().pages();
    for (int group = 0; group < pages.groups(); ++group) count(pages.table(group));
    for (const auto& copy : pages.state().written_from(-1)) count(copy);
  }
  return static_cast<int>(std::ranges::count_if(
      held, [&](const auto& entry) { return entry.second == pool.references(entry.first); }));
}

}  // namespace octavo

#include "kv_events/split_changes.h"

#include <utility>

namespace octavo::kv_events {
namespace {

bool has_keys(const Change& change) {
  const auto* stored = std::get_if<Stored>(&change);
  return stored != nullptr && !stored->block.extra.empty();
}

bool follows(const Change& change, const Change& before) {
  const auto* block = std::get_if<Stored>(&change);
  const auto* parent = std::get_if<Stored>(&before);
  return block != nullptr && parent != nullptr && block->medium == parent->medium &&
         block->block.group == parent->block.group && block->block.parent == parent->block.hash;
}

}  // namespace

std::vector<std::deque<Change>> split_changes(std::deque<Change> changes) {
  std::vector<std::deque<Change>> parts;
  bool with_keys = false;  // of the last part
  for (Change& change : changes) {
    const bool joins =
        !parts.empty() && (with_keys ? follows(change, parts.back().back()) : !has_keys(change));
    if (!joins) {
      parts.emplace_back();
      with_keys = has_keys(change);
    }
    parts.back().push_back(std::move(change));
  }
  return parts;
}

}  // namespace octavo::kv_events

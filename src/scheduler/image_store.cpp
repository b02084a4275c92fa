#include "scheduler/image_store.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

ImageId ImageStore::find(const std::string& identifier) const {
  const auto found = entries_.find(identifier);
  return found != entries_.end() && found->second.pieces_left == 0 ? found->second.id : 0;
}

void ImageStore::use(const std::string& identifier, uint64_t step) {
  entries_.at(identifier).last_use = step;
}

ImageWork ImageStore::plan(std::span<const Wanted> wanted, uint64_t step) {
  ImageWork work;
  if (wanted.empty()) return work;  // an encoding without a waiting sequence rests
  if (!encoding_.empty()) {
    // Other requests do not wait for a background request's image, nor for one that is not wanted any more.
    bool is_wanted = false;
    bool for_others = false;
    for (const Wanted& want : wanted) {
      if (want.image->identifier != encoding_) continue;
      is_wanted = true;
      for_others |= !want.background;
    }
    const bool another_is_urgent = std::ranges::any_of(wanted, [&](const Wanted& want) {
      return !want.background && !has(want.image->identifier);
    });
    if (!is_wanted || (another_is_urgent && !for_others)) drop(encoding_, work);
  }
  if (encoding_.empty()) begin_next(wanted, step, work);
  if (encoding_.empty()) return work;
  Entry& entry = entries_.at(encoding_);
  newest_ = encoding_;
  work.encodes = entry.id;
  work.pixels = std::exchange(entry.pixels, nullptr);
  if (--entry.pieces_left == 0) {
    ++encoded_;
    entry.last_use = step;
    encoding_.clear();
  }
  return work;
}

void ImageStore::begin_next(std::span<const Wanted> wanted, uint64_t step, ImageWork& work) {
  const auto next = std::ranges::find_if(
      wanted, [&](const Wanted& want) { return !has(want.image->identifier); });
  if (next == wanted.end()) return;
  const PromptImage& image = *next->image;
  const auto before = wanted.first(static_cast<size_t>(next - wanted.begin()));
  if (!make_room(image.rows(), before, step, work)) return;
  const int pieces = pieces_(image);
  OCTAVO_CHECK(pieces >= 1);
  entries_[image.identifier] = {.id = next_id_++,
                                .tokens = image.rows(),
                                .pieces_left = pieces,
                                .last_use = step,
                                .pixels = image.pixels};
  tokens_ += image.rows();
  encoding_ = image.identifier;
}

bool ImageStore::make_room(int tokens, std::span<const Wanted> keeps, uint64_t step,
                           ImageWork& work) {
  std::vector<std::pair<uint64_t, std::string>> candidates;  // by last use
  int most = 0;
  for (const auto& [identifier, entry] : entries_) {
    const bool kept = entry.last_use == step ||
                      std::ranges::any_of(keeps, [&, &name = identifier](const Wanted& want) {
                        return want.image->identifier == name;
                      });
    if (kept) continue;
    candidates.emplace_back(entry.last_use, identifier);
    most += entry.tokens;
  }
  if (tokens_ - most + tokens > kept_tokens_) return false;
  std::ranges::sort(candidates);
  for (const auto& [last_use, identifier] : candidates) {
    if (tokens_ + tokens <= kept_tokens_) break;
    drop(identifier, work);
  }
  return true;
}

void ImageStore::drop(const std::string& identifier, ImageWork& work) {
  const auto found = entries_.find(identifier);
  work.drops.push_back(found->second.id);
  tokens_ -= found->second.tokens;
  if (identifier == encoding_) encoding_.clear();
  entries_.erase(found);
}

void ImageStore::forget() {
  entries_.clear();
  encoding_.clear();
  tokens_ = 0;
}

}  // namespace octavo

#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

// The length of the longest suffix of `text` that is a proper prefix of `stop`.
size_t partial_match(std::string_view text, std::string_view stop) {
  for (size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size) {
    if (text.ends_with(stop.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(StopStringsOptions options) : options_(std::move(options)) {
  std::erase_if(options_.stops, [](const std::string& stop) { return stop.empty(); });
  // Longest first: of two that end at the same position, the longer one began first.
  std::ranges::stable_sort(options_.stops, std::ranges::greater{}, &std::string::size);
}

StopStrings::Step StopStrings::push(std::string_view delta) {
  if (done_) return {};
  held_ += delta;
  size_t end = std::string::npos;
  const std::string* found = nullptr;
  size_t hold = 0;
  for (const std::string& stop : options_.stops) {
    const size_t at = held_.find(stop);
    if (at != std::string::npos && at + stop.size() < end) {
      end = at + stop.size();
      found = &stop;
    }
    hold = std::max(hold, partial_match(held_, stop));
  }
  if (found != nullptr) {
    done_ = true;
    held_.resize(options_.include_stop_str ? end : end - found->size());
    return {.text = std::exchange(held_, {}), .matched = true, .stop = *found};
  }
  Step step;
  step.text = held_.substr(0, held_.size() - hold);
  held_.erase(0, step.text.size());
  return step;
}

std::string StopStrings::release() { return std::exchange(held_, {}); }

std::string StopStrings::finish() {
  done_ = true;
  return release();
}

}  // namespace octavo

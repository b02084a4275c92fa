#include "bench/filter.h"

#include <algorithm>

namespace octavo::bench {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool cuts_number(std::string_view label, size_t at) {
  return at > 0 && at < label.size() && is_digit(label[at - 1]) && is_digit(label[at]);
}

bool has_word(std::string_view label, std::string_view word) {
  for (size_t at = label.find(word); at != std::string_view::npos; at = label.find(word, at + 1)) {
    if (!cuts_number(label, at) && !cuts_number(label, at + word.size())) return true;
  }
  return false;
}

}  // namespace

bool matches_filter(std::string_view label, std::string_view filter) {
  for (size_t at = filter.find_first_not_of(' '); at != std::string_view::npos;) {
    const size_t end = std::min(filter.find(' ', at), filter.size());
    if (!has_word(label, filter.substr(at, end - at))) return false;
    at = filter.find_first_not_of(' ', end);
  }
  return true;
}

}  // namespace octavo::bench

// page_messages.h - the JSON with which replicas ask each other for pages. No MLX.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cache/disk_index.h"

namespace octavo {

inline constexpr const char* kListPagesPath = "/octavo/prefix_pages/list";
inline constexpr const char* kReadPagesPath = "/octavo/prefix_pages/read";

// Of a list.
inline constexpr size_t kMostListedPages = 1 << 16;
// Of the answer to a read, unless one page is larger.
inline constexpr size_t kMostReadBytes = 16u << 20;

inline size_t pages_per_read(size_t page_bytes) {
  return std::max<size_t>(1, std::min<size_t>(64, kMostReadBytes / page_bytes));
}

struct PageLink {
  PageKey key;
  std::optional<PageKey> parent = {};
};

// The parsers throw SetupError that says what is wrong.
std::string list_request(const std::string& fingerprint);
std::string list_answer(const std::vector<DiskRecord>& pages);
std::vector<PageLink> parse_list_answer(const std::string& json);

std::string read_request(const std::string& fingerprint, const std::vector<PageLink>& pages);

struct ReadRequest {
  std::string fingerprint;
  std::vector<PageKey> keys = {};  // none: a request for a list
};
ReadRequest parse_request(const std::string& json);

}  // namespace octavo

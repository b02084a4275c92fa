#include "server/api_key_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/error.h"

namespace octavo::server {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kMostKeys = 10'000;  // every name is a label value of metrics

bool is_key_name(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, is_allowed);
}

ApiKey key_of_line(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_key_name(line.substr(0, colon)))
    return {.key = std::string(line)};
  std::string_view key = line.substr(colon + 1);
  while (key.starts_with(' ') || key.starts_with('\t')) key.remove_prefix(1);
  return {.key = std::string(key), .name = std::string(line.substr(0, colon))};
}

class KeyFileReader {
 public:
  explicit KeyFileReader(const std::string& path) : path_(path) {}

  // Messages have the number of the line, never the key.
  void add(int line, ApiKey key) {
    if (is_blank_key(key.key))
      fail(line, fmt::format("there is no key after \"{}:\"; add one", key.name));
    if (const auto [first, added] = lines_of_keys_.emplace(key.key, line); !added)
      fail(line, fmt::format("the key of line {} again; remove one of them", first->second));
    if (!key.name.empty()) {
      const auto [first, added] = lines_of_names_.emplace(key.name, line);
      if (!added)
        fail(line, fmt::format("the name {} is used in line {} already; choose another", key.name,
                               first->second));
    }
    if (keys_.size() == kMostKeys)
      throw SetupError(
          fmt::format("--api-key-file: {} has more than {} keys; use fewer", path_, kMostKeys));
    keys_.push_back(std::move(key));
  }

  std::vector<ApiKey> take() {
    if (keys_.empty()) throw SetupError("--api-key-file: no key in " + path_);
    return std::move(keys_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& what) const {
    throw SetupError(fmt::format("--api-key-file: line {} of {}: {}", line, path_, what));
  }

  const std::string& path_;
  std::vector<ApiKey> keys_;
  std::map<std::string, int> lines_of_keys_;
  std::map<std::string, int> lines_of_names_;
};

}  // namespace

bool is_blank_key(std::string_view key) {
  return key.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::vector<ApiKey> read_api_key_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw SetupError("--api-key-file: cannot read " + path);
  KeyFileReader reader(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!is_blank_key(line) && line.front() != '#') reader.add(number, key_of_line(line));
  }
  return reader.take();
}

}  // namespace octavo::server

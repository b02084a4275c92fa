// api_key_file.h - API keys as they are configured, and the file of --api-key-file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::server {

struct ApiKey {
  std::string key = {};
  std::string name = {};  // for the access log and metrics; empty: none
};

// Empty, or nothing but white space: a request without a key would match it.
bool is_blank_key(std::string_view key);

// One key per line, as "KEY" or "NAME:KEY". The text before the first colon is a name only if it
// consists of 1 to 64 letters, digits, dots, hyphens and underscores; otherwise the whole line is the
// key. Blank lines and lines that begin with # are skipped. Throws SetupError if the file cannot be
// read, has no key, or has a key or a name twice.
std::vector<ApiKey> read_api_key_file(const std::string& path);

}  // namespace octavo::server

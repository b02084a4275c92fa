#include "api/request_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>

namespace octavo::api {
namespace {

constexpr size_t kLongest = 128;

// Characters that are safe in headers and log lines.
bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ||
         c == ':';
}

}  // namespace

std::string fresh_request_id() {
  // Ids must be unique, not secret.
  static thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return fmt::format("{:016x}{:016x}", random(), random());
}

std::string request_id_of(std::string_view sent) {
  const bool usable =
      !sent.empty() && sent.size() <= kLongest && std::ranges::all_of(sent, is_plain);
  return usable ? std::string(sent) : fresh_request_id();
}

}  // namespace octavo::api

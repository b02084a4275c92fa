#include "server/accept_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace octavo::server {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{50};
constexpr milliseconds kLongestWait{500};
constexpr std::chrono::seconds kBetweenLines{10};

}  // namespace

AcceptFailures::Advice AcceptFailures::failed(const std::string& reason, Clock::time_point now) {
  wait_ = std::clamp(2 * wait_, kFirstWait, kLongestWait);
  ++unlogged_;
  if (logged_ != Clock::time_point{} && now - logged_ < kBetweenLines) return {wait_, ""};
  logged_ = now;
  return {wait_, fmt::format("cannot accept connections: {} ({} failed attempts since the last "
                             "report); raise the limit of open files (ulimit -n, LimitNOFILE in "
                             "systemd) or lower --max-connections",
                             reason, std::exchange(unlogged_, 0))};
}

}  // namespace octavo::server

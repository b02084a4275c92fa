#include "text/text_helpers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace octavo {
namespace {

using PoolClock = std::chrono::steady_clock;
using Reason = HelperFailure::Reason;

// After a helper could not be started, and between looks at idle ones.
constexpr std::chrono::seconds kKeeperPause{1};
// How soon a requested stop is noticed.
constexpr std::chrono::milliseconds kStopTick{50};

[[noreturn]] void throw_refusal(std::string_view packed) {
  const auto parts = unpack(packed, 3);
  throw RequestError(std::stoi(std::string(parts[0])), std::string(parts[1]),
                     std::string(parts[2]));
}

}  // namespace

TextHelpers::TextHelpers(TextHelperOptions options)
    : options_(std::move(options)),
      wanted_(options_.start_at_once),
      missing_(options_.processes),
      keeper_([this] { keep_started(); }) {}

TextHelpers::~TextHelpers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  keeper_.join();
}

HelperProcess TextHelpers::start() const {
  HelperProcess helper(options_.command);
  const HelperReply reply =
      helper.ask(HelperMessage::kSetUp, options_.setup(), options_.setup_limits, {});
  if (reply.outcome != HelperReply::Outcome::kAnswered)
    throw SetupError("a helper process ended while it was set up");
  if (reply.kind != HelperMessage::kResult)
    throw SetupError("a helper process could not be set up: " + reply.payload);
  return helper;
}

void TextHelpers::keep_started() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ending_ || wanted_; });
  while (!ending_) {
    const size_t before = idle_.size();
    std::erase_if(idle_, [](HelperProcess& helper) { return !helper.alive(); });
    missing_ += static_cast<int>(before - idle_.size());
    if (missing_ == 0) {
      changed_.wait_for(lock, kKeeperPause, [&] { return ending_ || missing_ > 0; });
      continue;
    }
    lock.unlock();
    std::optional<HelperProcess> started;
    std::string problem;
    try {
      started.emplace(start());
    } catch (const std::exception& error) {
      problem = error.what();
    }
    lock.lock();
    problem_ = problem;
    if (started) {
      --missing_;
      idle_.push_back(std::move(*started));
    }
    changed_.notify_all();
    if (!started) {
      spdlog::warn("{}", problem);
      changed_.wait_for(lock, kKeeperPause, [&] { return ending_; });
    }
  }
}

HelperProcess TextHelpers::take(const std::stop_token& stop) {
  const auto until = PoolClock::now() + options_.queue_time;
  std::unique_lock lock(mutex_);
  wanted_ = true;
  changed_.notify_all();
  while (true) {
    while (!idle_.empty()) {
      HelperProcess helper = std::move(idle_.back());
      idle_.pop_back();
      if (helper.alive()) return helper;
      ++missing_;
      changed_.notify_all();
    }
    if (stop.stop_requested()) throw HelperFailure(Reason::kStopped, "the request was stopped");
    // With other helpers at work, a failed start only means a longer wait.
    if (!problem_.empty() && missing_ == options_.processes)
      throw HelperFailure(Reason::kUnavailable, problem_);
    if (PoolClock::now() >= until)
      throw HelperFailure(Reason::kUnavailable, "all helper processes are busy; try again later");
    changed_.wait_for(lock, kStopTick);
  }
}

void TextHelpers::give_back(HelperProcess helper) {
  const bool alive = helper.alive();
  const std::lock_guard lock(mutex_);
  if (alive) {
    idle_.push_back(std::move(helper));
  } else {
    ++missing_;
  }
  changed_.notify_all();
}

std::string TextHelpers::run(std::string_view job, HelperLimits limits,
                             const std::stop_token& stop) {
  HelperProcess helper = take(stop);
  HelperReply reply = helper.ask(HelperMessage::kJob, job, limits, stop);
  give_back(std::move(helper));
  switch (reply.outcome) {
    case HelperReply::Outcome::kAnswered:
      if (reply.kind == HelperMessage::kRefused) throw_refusal(reply.payload);
      return std::move(reply.payload);
    case HelperReply::Outcome::kTooLong:
      throw HelperFailure(Reason::kTooLong, "it took too long");
    case HelperReply::Outcome::kDied:
      throw HelperFailure(Reason::kDied, "it took too much memory");
    case HelperReply::Outcome::kStopped:
      throw HelperFailure(Reason::kStopped, "the request was stopped");
  }
  OCTAVO_CHECK(false);
}

std::vector<pid_t> TextHelpers::idle_processes() const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> all;
  for (const HelperProcess& helper : idle_) all.push_back(helper.pid());
  return all;
}

}  // namespace octavo

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

// Between looks at idle helpers.
constexpr std::chrono::seconds kKeeperPause{1};
constexpr int kMostPauses = 30;
// From this many failures on, in a row, helpers count as unavailable.
constexpr int kManyFailures = 3;
// How soon a requested stop is noticed.
constexpr std::chrono::milliseconds kStopTick{50};

[[noreturn]] void throw_refusal(std::string_view packed) {
  const auto parts = unpack(packed, 3);
  throw RequestError(std::stoi(std::string(parts[0])), std::string(parts[1]),
                     std::string(parts[2]));
}

int pauses_after(int failures) { return std::min(1 << std::min(failures - 1, 5), kMostPauses); }

}  // namespace

// A helper that goes back to its pool on every way out.
class TextHelpers::Borrowed {
 public:
  Borrowed(TextHelpers& pool, const std::stop_token& stop)
      : pool_(pool), helper_(pool.take(stop)) {}
  ~Borrowed() { pool_.give_back(std::move(helper_)); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  HelperProcess& helper() { return helper_; }

 private:
  TextHelpers& pool_;
  HelperProcess helper_;
};

TextHelpers::TextHelpers(TextHelperOptions options)
    : options_(std::move(options)), wanted_(options_.start_at_once), missing_(options_.processes) {
  idle_.reserve(static_cast<size_t>(options_.processes));
  keeper_ = std::thread([this] { keep_started(); });
}

TextHelpers::~TextHelpers() {
  {
    const std::lock_guard lock(mutex_);
    ending_.request_stop();
    changed_.notify_all();
  }
  keeper_.join();
}

HelperProcess TextHelpers::start() const {
  HelperProcess helper(options_.command);
  const HelperReply reply = helper.ask(HelperMessage::kSetUp, options_.setup(),
                                       options_.setup_limits, ending_.get_token());
  if (reply.outcome != HelperReply::Outcome::kAnswered)
    throw SetupError("a helper process ended while it was set up");
  if (reply.kind != HelperMessage::kResult)
    throw SetupError("a helper process could not be set up: " + reply.payload);
  return helper;
}

void TextHelpers::keep_started() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ending() || wanted_; });
  while (!ending()) {
    const size_t before = idle_.size();
    std::erase_if(idle_, [](HelperProcess& helper) { return !helper.alive(); });
    missing_ += static_cast<int>(before - idle_.size());
    if (missing_ == 0) {
      changed_.wait_for(lock, kKeeperPause, [&] { return ending() || missing_ > 0; });
      continue;
    }
    try {
      start_missing(lock);
    } catch (...) {  // no memory even to say what failed
      if (!lock.owns_lock()) lock.lock();
      changed_.wait_for(lock, kKeeperPause, [&] { return ending(); });
    }
  }
}

void TextHelpers::start_missing(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::optional<HelperProcess> started;
  std::string problem;
  try {
    started.emplace(start());
  } catch (const std::exception& error) {
    problem = error.what();
  }
  lock.lock();
  problem_ = std::move(problem);
  if (!started) {
    start_failed(lock);
    return;
  }
  --missing_;
  idle_.push_back(std::move(*started));
  changed_.notify_all();
  if (std::exchange(failures_, 0) >= kManyFailures)
    spdlog::info("helper processes can be started again");
}

void TextHelpers::start_failed(std::unique_lock<std::mutex>& lock) {
  changed_.notify_all();
  if (ending()) return;
  ++failures_;
  // Without the lock, because the log's reader may be slow. No other thread changes what is read.
  lock.unlock();
  if (failures_ < kManyFailures) {
    spdlog::warn("{}", problem_);
  } else if (failures_ == kManyFailures) {
    spdlog::error(
        "helper processes cannot be started; if the program was replaced, restart the server: {}",
        problem_);
  }
  lock.lock();
  changed_.wait_for(lock, options_.restart_pause * pauses_after(failures_),
                    [&] { return ending(); });
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

void TextHelpers::give_back(HelperProcess helper) noexcept {
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
  const auto ask = [&] {
    return Borrowed(*this, stop).helper().ask(HelperMessage::kJob, job, limits, stop);
  };
  HelperReply reply = ask();
  // The system chooses helpers when memory runs out, whatever their job is. All may have been
  // chosen at once, and one that is still ending looks alive: the last attempt has a new one.
  for (int i = 0; i < options_.processes && reply.outcome == HelperReply::Outcome::kKilled; ++i)
    reply = ask();
  switch (reply.outcome) {
    case HelperReply::Outcome::kAnswered:
      if (reply.kind == HelperMessage::kRefused) throw_refusal(reply.payload);
      return std::move(reply.payload);
    case HelperReply::Outcome::kTooLong:
      throw HelperFailure(Reason::kTooLong, "it took too long");
    case HelperReply::Outcome::kDied:
      throw HelperFailure(Reason::kDied, "it took too much memory");
    case HelperReply::Outcome::kKilled:
      throw HelperFailure(Reason::kUnavailable,
                          "the machine may be out of memory: helper processes were killed; try "
                          "again later");
    case HelperReply::Outcome::kStopped:
      throw HelperFailure(Reason::kStopped, "the request was stopped");
  }
  OCTAVO_CHECK(false);
}

bool TextHelpers::available() const {
  const std::lock_guard lock(mutex_);
  return failures_ < kManyFailures || missing_ < options_.processes;
}

std::vector<pid_t> TextHelpers::idle_processes() const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> all;
  for (const HelperProcess& helper : idle_) all.push_back(helper.pid());
  return all;
}

}  // namespace octavo

#include "front/residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace octavo::front {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Residency::Action::Kind;
using State = Residency::State;

constexpr KeepAlive kForEver{.time = std::nullopt};

// Drives a Residency with a clock of its own and processes that start and stop at once.
class ResidencyBench {
 public:
  explicit ResidencyBench(ResidencyOptions options) : residency(options) {}

  void wait(const std::string& model, uint64_t bytes, KeepAlive keep_alive = {},
            bool pinned = false) {
    residency.wait({.model = model, .bytes = bytes, .pinned = pinned, .keep_alive = keep_alive},
                   now);
    run();
  }
  // Waits and opens, if the model is loaded at once.
  bool use(const std::string& model, uint64_t bytes, KeepAlive keep_alive = {}) {
    wait(model, bytes, keep_alive);
    if (!residency.can_open(model)) return false;
    residency.open_waiting(model, now);
    return true;
  }
  void close(const std::string& model, std::optional<KeepAlive> keep_alive = {}) {
    residency.close(model, keep_alive, now);
    run();
  }
  void pass(milliseconds time) {
    now += time;
    run();
  }
  // A process that starts is ready at once, one that stops ends at once.
  void run() {
    for (bool again = true; again;) {
      again = false;
      for (const auto& action : residency.decide(now)) {
        again = true;
        if (action.kind == Kind::kStart) {
          started.push_back(action.model);
          residency.loaded(action.model, now);
        } else {
          stopped.push_back(action.model);
          residency.ended(action.model, now);
        }
      }
    }
  }
  State state(const std::string& model) const {
    const auto* found = residency.find(model);
    return found == nullptr ? State::kUnloaded : found->state;
  }

  Residency residency;
  Residency::Time now{};
  std::vector<std::string> started, stopped;
};

TEST(Residency, UnloadsTheLeastRecentlyUsedIdleModel) {
  ResidencyBench bench({.budget_bytes = 10});
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(bench.use(name, 5));
    bench.pass(milliseconds(1));
    bench.close(name);
  }
  ASSERT_TRUE(bench.use("a", 5));
  bench.pass(milliseconds(1));
  bench.close("a");
  EXPECT_TRUE(bench.use("c", 5));
  EXPECT_THAT(bench.stopped, testing::ElementsAre("b"));
}

TEST(Residency, NeverUnloadsAModelWithOpenRequestsAndKeepsIdleOnesThatWouldNotHelp) {
  ResidencyBench bench({.budget_bytes = 10});
  ASSERT_TRUE(bench.use("busy", 6));
  ASSERT_TRUE(bench.use("idle", 3));
  bench.close("idle");
  EXPECT_FALSE(bench.use("big", 8));
  bench.pass(seconds(4));
  EXPECT_TRUE(bench.stopped.empty());
  bench.pass(seconds(60));
  EXPECT_EQ(bench.state("busy"), State::kLoaded);
  bench.close("busy");
  EXPECT_EQ(bench.state("big"), State::kLoaded);
  EXPECT_THAT(bench.stopped, testing::UnorderedElementsAre("busy", "idle"));
}

TEST(Residency, HoldsTheLimitOfModels) {
  ResidencyBench bench({.budget_bytes = 100, .models_max = 2});
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(bench.use(name, 1));
    bench.pass(milliseconds(1));
    bench.close(name);
  }
  EXPECT_THAT(bench.stopped, testing::ElementsAre("a"));
}

TEST(Residency, UnloadsIdleModelsAfterTheirKeepAlive) {
  ResidencyBench bench({.budget_bytes = 10});
  const KeepAlive minute{.time = seconds(60)};
  ASSERT_TRUE(bench.use("a", 1, minute));
  bench.pass(seconds(100));
  EXPECT_EQ(bench.state("a"), State::kLoaded);  // its request is still open
  bench.close("a");
  EXPECT_EQ(bench.residency.next_decision(bench.now), bench.now + seconds(60));
  bench.pass(seconds(59));
  EXPECT_EQ(bench.state("a"), State::kLoaded);
  bench.pass(seconds(1));
  EXPECT_EQ(bench.state("a"), State::kUnloaded);
}

TEST(Residency, ARequestsKeepAliveReplacesTheModels) {
  ResidencyBench bench({.budget_bytes = 10});
  ASSERT_TRUE(bench.use("a", 1));
  bench.close("a", KeepAlive{.time = milliseconds(0)});
  EXPECT_EQ(bench.state("a"), State::kUnloaded);
  ASSERT_TRUE(bench.use("a", 1));
  bench.close("a", kForEver);
  bench.pass(std::chrono::hours(1000));
  EXPECT_EQ(bench.state("a"), State::kLoaded);
}

TEST(Residency, KeepsPinnedModels) {
  ResidencyBench bench({.budget_bytes = 10, .models_max = 2});
  bench.wait("pinned", 6, {}, true);
  bench.residency.stop_waiting("pinned");
  bench.pass(std::chrono::hours(1));
  EXPECT_EQ(bench.residency.most_bytes_for("other"), 4);
  EXPECT_EQ(bench.residency.most_bytes_for("pinned"), 10);
  EXPECT_TRUE(bench.use("a", 4));
  bench.close("a");
  EXPECT_TRUE(bench.use("b", 4));
  EXPECT_THAT(bench.stopped, testing::ElementsAre("a"));
  ResidencyBench one({.budget_bytes = 10, .models_max = 1});
  one.wait("pinned", 1, {}, true);
  EXPECT_EQ(one.residency.most_bytes_for("other"), std::nullopt);
}

TEST(Residency, AWaitingModelGetsItsTurnFromABusyOne) {
  ResidencyBench bench({.budget_bytes = 10});
  ASSERT_TRUE(bench.use("a", 6));
  ASSERT_FALSE(bench.use("b", 6));
  ASSERT_TRUE(bench.use("a", 6));  // overlaps with the first request
  bench.close("a");
  bench.pass(seconds(5));
  EXPECT_FALSE(bench.use("a", 6));  // waits for b
  EXPECT_EQ(bench.state("a"), State::kLoaded);
  bench.close("a");
  EXPECT_EQ(bench.state("b"), State::kLoaded);
  EXPECT_EQ(bench.state("a"), State::kWaiting);
  bench.residency.open_waiting("b", bench.now);
  bench.close("b");
  EXPECT_EQ(bench.state("a"), State::kLoaded);
}

TEST(Residency, ASmallModelOvertakesOnlyUntilTheTurnOfTheFirst) {
  ResidencyBench bench({.budget_bytes = 10});
  ASSERT_TRUE(bench.use("busy", 6));
  ASSERT_FALSE(bench.use("big", 9));
  EXPECT_TRUE(bench.use("small", 2));
  bench.pass(seconds(5));
  EXPECT_FALSE(bench.use("smaller", 1));
}

TEST(Residency, UnloadsOnRequestOnceTheOpenRequestsEnd) {
  ResidencyBench bench({.budget_bytes = 10});
  ASSERT_TRUE(bench.use("a", 1));
  bench.residency.unload("a");
  bench.run();
  EXPECT_EQ(bench.state("a"), State::kLoaded);
  EXPECT_FALSE(bench.residency.can_open("a"));
  bench.close("a");
  EXPECT_EQ(bench.state("a"), State::kUnloaded);
}

TEST(Residency, AProcessThatEndsByItselfFreesItsMemory) {
  ResidencyBench bench({.budget_bytes = 10});
  ASSERT_TRUE(bench.use("a", 10));
  ASSERT_FALSE(bench.use("b", 10));
  bench.residency.ended("a", bench.now);
  bench.run();
  EXPECT_EQ(bench.state("b"), State::kLoaded);
  EXPECT_EQ(bench.state("a"), State::kUnloaded);
}

// Requests for eight models that arrive, wait, run and end at random; processes take time to start
// and to stop, and sometimes end by themselves.
class RandomRequests {
 public:
  explicit RandomRequests(uint64_t seed)
      : random_(seed),
        options_{.budget_bytes = 100, .models_max = static_cast<int>(seed % 4)},
        residency_(options_) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(pick(5, 60));
  }

  void run(int requests) {
    for (int made = 0; made < requests || !all_ended();) {
      if (made < requests && pick(0, 3) == 0) {
        arrive();
        ++made;
      }
      now_ += milliseconds(pick(1, 400));
      advance();
      check();
    }
  }

 private:
  struct OpenRequest {
    int model;
    Residency::Time ends;
  };
  struct WaitingRequest {
    int model;
    Residency::Time since;
  };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  std::string name(int model) const { return "m" + std::to_string(model); }
  bool all_ended() const { return open_.empty() && waiting_.empty(); }

  void arrive() {
    const int model = pick(0, 7);
    const KeepAlive keep_alive{.time = milliseconds(pick(0, 20'000))};
    residency_.wait({.model = name(model),
                     .bytes = static_cast<uint64_t>(bytes_[static_cast<size_t>(model)]),
                     .keep_alive = keep_alive},
                    now_);
    waiting_.push_back({.model = model, .since = now_});
  }

  void advance() {
    end_requests();
    for (auto& [model, at] : std::map(starting_)) {
      if (at > now_) continue;
      starting_.erase(model);
      if (pick(0, 19) == 0) {
        residency_.ended(model, now_);
      } else {
        residency_.loaded(model, now_);
      }
    }
    for (auto& [model, at] : std::map(stopping_)) {
      if (at > now_) continue;
      stopping_.erase(model);
      residency_.ended(model, now_);
    }
    if (pick(0, 99) == 0) crash_one();
    grant();
    for (const auto& action : residency_.decide(now_)) {
      if (action.kind == Kind::kStart) {
        starting_[action.model] = now_ + milliseconds(pick(0, 2000));
      } else {
        ASSERT_EQ(residency_.find(action.model)->open, 0);
        stopping_[action.model] = now_ + milliseconds(pick(0, 500));
      }
    }
  }

  void end_requests() {
    for (size_t i = 0; i < open_.size();) {
      if (open_[i].ends > now_) {
        ++i;
        continue;
      }
      residency_.close(name(open_[i].model), std::nullopt, now_);
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void grant() {
    for (size_t i = 0; i < waiting_.size();) {
      if (!residency_.can_open(name(waiting_[i].model))) {
        // With eight models, each wait is for at most the turns of the others.
        ASSERT_LT(now_ - waiting_[i].since, seconds(600));
        ++i;
        continue;
      }
      residency_.open_waiting(name(waiting_[i].model), now_);
      open_.push_back({.model = waiting_[i].model, .ends = now_ + milliseconds(pick(0, 8000))});
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void crash_one() {
    for (const auto& [model, entry] : residency_.entries()) {
      if (entry.state != State::kLoaded) continue;
      const std::string dead = model;
      std::erase_if(open_, [&](const OpenRequest& each) { return name(each.model) == dead; });
      residency_.ended(dead, now_);
      return;
    }
  }

  void check() const {
    uint64_t used = 0;
    int count = 0;
    std::map<std::string, int> open;
    for (const OpenRequest& each : open_) ++open[name(each.model)];
    for (const auto& [model, entry] : residency_.entries()) {
      EXPECT_EQ(entry.open, open[model]) << model;
      EXPECT_TRUE(entry.open == 0 || entry.state == State::kLoaded) << model;
      if (entry.state == State::kUnloaded || entry.state == State::kWaiting) continue;
      used += entry.bytes;
      ++count;
    }
    ASSERT_LE(used, options_.budget_bytes);
    ASSERT_EQ(used, residency_.used_bytes());
    ASSERT_TRUE(options_.models_max == 0 || count <= options_.models_max);
  }

  std::mt19937_64 random_;
  ResidencyOptions options_;
  Residency residency_;
  Residency::Time now_{};
  std::vector<int> bytes_;
  std::vector<OpenRequest> open_;
  std::vector<WaitingRequest> waiting_;
  std::map<std::string, Residency::Time> starting_, stopping_;
};

TEST(Residency, RandomRequestsStayWithinTheLimitsAndAllEnd) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomRequests(seed).run(300);
    if (HasFatalFailure()) return;
  }
}

// A model that is always in use must not keep another out.
TEST(Residency, ContinuousRequestsForOneModelDoNotStarveAnother) {
  Residency residency({.budget_bytes = 10});
  Residency::Time now{};
  const Residency::Demand popular{.model = "popular", .bytes = 8};
  const Residency::Demand other{.model = "other", .bytes = 8};
  int open = 0;
  bool other_opened = false;
  residency.wait(popular, now);
  int waiting = 1;
  for (int step = 0; step < 20'000 && !other_opened; ++step, now += milliseconds(1)) {
    if (step == 100) residency.wait(other, now);
    for (const auto& action : residency.decide(now)) {
      if (action.kind == Kind::kStart) {
        residency.loaded(action.model, now);
      } else {
        residency.ended(action.model, now);
      }
    }
    if (residency.can_open("popular") && waiting > 0) {
      residency.open_waiting("popular", now);
      --waiting;
      ++open;
      residency.wait(popular, now);
      ++waiting;
    }
    // At least one request is open at any time.
    if (open > 1 || (open == 1 && !residency.can_open("popular"))) {
      residency.close("popular", std::nullopt, now);
      --open;
    }
    if (residency.can_open("other")) {
      residency.open_waiting("other", now);
      other_opened = true;
    }
  }
  EXPECT_TRUE(other_opened);
}

}  // namespace
}  // namespace octavo::front

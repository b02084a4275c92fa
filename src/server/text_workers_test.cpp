#include "server/text_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/require.hpp>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "server/text_task.h"

namespace octavo::server {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// An exchange of which only the client's departure is used.
class OnlyClient : public Exchange {
 public:
  const HttpRequest& request() const override { return request_; }
  HeldBody take_body() override { return {}; }
  Awaitable<void> send(HttpResponse) override { co_return; }
  Awaitable<void> start_stream(HttpResponse) override { co_return; }
  Awaitable<void> write(std::string_view) override { co_return; }
  bool started() const override { return false; }
  bool client_gone() const override { return gone_; }
  void on_client_gone(std::function<void()> callback) override { on_gone_ = std::move(callback); }
  void note(std::string_view, std::string_view) override {}

  void leave() {
    gone_ = true;
    if (on_gone_) std::exchange(on_gone_, nullptr)();
  }

 private:
  HttpRequest request_;
  bool gone_ = false;
  std::function<void()> on_gone_ = nullptr;
};

class TextWorkersTest : public testing::Test {
 protected:
  // Runs the work and returns "42", "gone", "503 reason" or "memory".
  void start(std::function<int(const api::Preparation&)> work, TaskLimits limits = {}) {
    const size_t place = outcomes_.size();
    outcomes_.emplace_back();
    boost::asio::co_spawn(io_, watched(std::move(work), limits, place), boost::asio::detached);
  }
  // Runs the I/O thread until the outcomes of these tasks are known.
  void run_until(std::initializer_list<size_t> tasks) {
    const auto known = [&](size_t task) { return !outcomes_[task].empty(); };
    const auto end = Clock::now() + 20s;
    while (!std::ranges::all_of(tasks, known) && Clock::now() < end) {
      io_.restart();
      io_.run_one_for(10ms);
    }
    EXPECT_TRUE(std::ranges::all_of(tasks, known));
  }

  OnlyClient client_;  // before the tasks that refer to it
  boost::asio::io_context io_;
  std::atomic<bool> release_ = false;
  std::vector<std::string> outcomes_;
  TextWorkers workers_{io_.get_executor(), {.threads = 2, .most_long_jobs = 2, .long_job = 50ms}};

 private:
  using Function = std::function<int(const api::Preparation&)>;
  Awaitable<void> watched(Function work, TaskLimits limits, size_t place) {
    std::string outcome;
    try {
      const auto task = std::make_shared<TextTask<Function>>(std::move(work));
      const int result = co_await run_task(workers_, task, limits);
      outcome = std::to_string(result);
    } catch (const ClientGone&) {
      outcome = "gone";
    } catch (const RequestError& error) {
      outcome = std::to_string(error.status()) + " " + error.what();
    } catch (const std::bad_alloc&) {
      outcome = "memory";
    }
    outcomes_[place] = outcome;
  }
};

int until_stopped(const api::Preparation& preparation) {
  while (true) {
    preparation.check();
    std::this_thread::sleep_for(1ms);
  }
}

TEST_F(TextWorkersTest, ResultsAndExceptionsArrive) {
  start([](const api::Preparation&) { return 42; });
  start([](const api::Preparation&) -> int { throw RequestError(400, "", "no"); });
  start([](const api::Preparation&) -> int { throw std::bad_alloc(); });
  run_until({0, 1, 2});
  EXPECT_EQ(outcomes_, (std::vector<std::string>{"42", "400 no", "memory"}));
}

TEST_F(TextWorkersTest, AClientThatLeavesStopsTheWork) {
  std::atomic<bool> ended = false;
  start(
      [&](const api::Preparation& preparation) {
        while (!preparation.stop.stop_requested()) std::this_thread::sleep_for(1ms);
        ended = true;
        return 0;
      },
      {.exchange = &client_});
  io_.run_for(20ms);
  EXPECT_EQ(outcomes_[0], "");
  client_.leave();
  run_until({0});
  EXPECT_EQ(outcomes_[0], "gone");
  EXPECT_TRUE(workers_.stop(20s));
  EXPECT_TRUE(ended);
}

TEST_F(TextWorkersTest, WorkIsGivenUpAtTheDeadlineEvenIfItDoesNotStop) {
  start(
      [&](const api::Preparation&) {
        while (!release_) std::this_thread::sleep_for(1ms);
        return 0;
      },
      {.exchange = &client_, .deadline = Clock::now() + 300ms});
  run_until({0});
  EXPECT_TRUE(outcomes_[0].starts_with("503 the request took too long to prepare")) << outcomes_[0];
  EXPECT_EQ(workers_.busy_for(20ms), 1);
  EXPECT_FALSE(workers_.stop(20ms)) << "a stuck job is reported";
  release_ = true;
  EXPECT_TRUE(workers_.stop(20s));
  EXPECT_EQ(workers_.busy_for(0ms), 0);
}

TEST_F(TextWorkersTest, LongJobsLeaveWorkersForOthers) {
  const auto wait = [&](const api::Preparation&) {
    while (!release_) std::this_thread::sleep_for(1ms);
    return 1;
  };
  for (int i = 0; i < 3; ++i) start(wait);
  start([](const api::Preparation&) { return 42; });
  run_until({3});
  EXPECT_EQ(outcomes_[3], "42");
  release_ = true;
  run_until({0, 1, 2});
  EXPECT_EQ(outcomes_[0], "1");
}

TEST_F(TextWorkersTest, TheOldestLongJobIsStoppedWhenThereAreTooMany) {
  for (int i = 0; i < 4; ++i) start(until_stopped, {.exchange = &client_});
  start([](const api::Preparation&) { return 42; });
  run_until({4});
  EXPECT_EQ(outcomes_[4], "42");
  EXPECT_TRUE(std::ranges::any_of(outcomes_, [](const std::string& outcome) {
    return outcome.starts_with("503 too many requests take long to prepare");
  }));
  client_.leave();
  run_until({0, 1, 2, 3});
}

TEST_F(TextWorkersTest, JobsThatWaitAreNeitherStuckNorStopped) {
  const auto wait = [&](const api::Preparation& preparation) {
    const api::Waiting waiting(preparation);
    while (!release_) {
      preparation.check();
      std::this_thread::sleep_for(1ms);
    }
    return 1;
  };
  for (int i = 0; i < 8; ++i) start(wait, {.exchange = &client_});
  start([](const api::Preparation&) { return 42; });
  run_until({8});
  EXPECT_EQ(outcomes_[8], "42");
  EXPECT_EQ(workers_.busy_for(0ms), 0);
  release_ = true;
  run_until({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(std::ranges::count(outcomes_, "1"), 8);
}

TEST_F(TextWorkersTest, AJobIsBusySinceItLastWaited) {
  std::atomic<bool> waited = false;
  start([&](const api::Preparation& preparation) {
    std::this_thread::sleep_for(500ms);
    { const api::Waiting waiting(preparation); }
    waited = true;
    while (!release_) std::this_thread::sleep_for(1ms);
    return 1;
  });
  while (!waited) io_.run_one_for(1ms);
  EXPECT_EQ(workers_.busy_for(450ms), 0);
  EXPECT_EQ(workers_.busy_for(0ms), 1);
  release_ = true;
  run_until({0});
}

TEST_F(TextWorkersTest, AStoppedJobInTheQueueNeverRuns) {
  for (int i = 0; i < 2; ++i)
    start([&](const api::Preparation&) {
      while (!release_) std::this_thread::sleep_for(1ms);
      return 1;
    });
  io_.run_for(5ms);  // both workers are busy, and not for long enough to be replaced
  std::atomic<bool> ran = false;
  start(
      [&](const api::Preparation&) {
        ran = true;
        return 2;
      },
      {.exchange = &client_, .deadline = Clock::now()});
  run_until({2});
  EXPECT_TRUE(outcomes_[2].starts_with("503")) << outcomes_[2];
  release_ = true;
  run_until({0, 1});
  EXPECT_TRUE(workers_.stop(20s));
  EXPECT_FALSE(ran);
}

// Passes work on to an io_context, after some failures for lack of memory.
class PoorExecutor {
 public:
  PoorExecutor(boost::asio::io_context& io, std::atomic<int>& failures)
      : io_(&io), failures_(&failures) {}

  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
    return *io_;
  }
  static constexpr boost::asio::execution::blocking_t::never_t query(
      boost::asio::execution::blocking_t) noexcept {
    return {};
  }
  template <typename Work>
  void execute(Work work) const {
    if ((*failures_)-- > 0) throw std::bad_alloc();
    boost::asio::require(io_->get_executor(), boost::asio::execution::blocking.never)
        .execute(std::move(work));
  }
  friend bool operator==(const PoorExecutor&, const PoorExecutor&) noexcept = default;

 private:
  boost::asio::io_context* io_;
  std::atomic<int>* failures_;
};

class NotedJob : public TextJob {
 public:
  NotedJob(bool& ended, std::thread::id& destroyed_by)
      : ended_(ended), destroyed_by_(destroyed_by) {}
  ~NotedJob() override { destroyed_by_ = std::this_thread::get_id(); }

 protected:
  void run() noexcept override {}
  void ended() noexcept override { ended_ = true; }

 private:
  bool& ended_;
  std::thread::id& destroyed_by_;
};

TEST(TextWorkers, AFinishedJobWaitsForMemory) {
  boost::asio::io_context io;
  std::atomic<int> failures = 3;
  bool ended = false;
  std::thread::id destroyed_by;
  TextWorkers workers(PoorExecutor(io, failures), {.threads = 1});
  workers.submit(std::make_shared<NotedJob>(ended, destroyed_by));
  const auto end = Clock::now() + 20s;
  while (!ended && Clock::now() < end) {
    io.restart();
    io.run_one_for(10ms);
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(failures, -1);
  EXPECT_EQ(destroyed_by, std::this_thread::get_id());
}

TEST_F(TextWorkersTest, StoppingReachesQueuedAndRunningWork) {
  for (int i = 0; i < 5; ++i) start(until_stopped, {.exchange = &client_});
  io_.run_for(10ms);
  workers_.stop_jobs("the server is shutting down");
  run_until({0, 1, 2, 3, 4});
  for (const std::string& outcome : outcomes_)
    EXPECT_EQ(outcome, "503 the server is shutting down");
  EXPECT_TRUE(workers_.stop(20s));
}

}  // namespace
}  // namespace octavo::server

#include "front/model_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "front/model_routes.h"

namespace octavo::front {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

// The children are scripts of the shell: a plan of 7 MiB and 1 MiB of KV cache, which makes 9.15 MiB
// with the memory of requests. A file of the model's name may change what they do.
constexpr const char* kFakeOctavo = R"(#!/bin/sh
echo "$@" >>"$POOL_TEST_FOLDER/calls"
. "$2"
case "$*" in
  *--plan-only*)
    if [ -n "$PLAN_ERROR" ]; then echo "{\"event\":\"error\",\"message\":\"$PLAN_ERROR\"}" >&3; exit 1; fi
    echo "{\"event\":\"plan\",\"path\":\"$2\",\"budget_bytes\":1099511627776,\"fixed_bytes\":${FIXED:-7340032},\"kv_bytes\":1048576,\"least_kv_bytes\":4096}" >&3
    exit 0;;
esac
if [ -n "$LOAD_ERROR" ]; then echo "{\"event\":\"error\",\"message\":\"$LOAD_ERROR\"}" >&3; exit 1; fi
if [ -n "$CRASH" ]; then echo "last words" >&2; exit 9; fi
echo '{"event":"progress","stage":"load","done":1,"total":2}' >&3
if [ -n "$SLOW" ]; then sleep $SLOW; fi
echo '{"event":"ready","planned_bytes":1,"max_model_len":77,"takes_images":true}' >&3
read line <&3
)";

class ModelPoolTest : public testing::Test {
 protected:
  ModelPoolTest() {
    std::string pattern = (fs::temp_directory_path() / "octavo-pool-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("POOL_TEST_FOLDER", folder_.c_str(), 1);
    options_.program = write("octavo.sh", kFakeOctavo);
    fs::permissions(options_.program, fs::perms::owner_all);
    options_.catalog.models_dir = folder_ / "models";
    options_.catalog.hub.cache = folder_ / "hf";
    options_.catalog.hub.ollama = folder_ / "ollama";
    options_.budget_bytes = 20 * kMiB;  // two models
    for (const char* name : {"a", "b", "c"}) add_model(name, "");
  }
  ~ModelPoolTest() override {
    pool_.reset();
    fs::remove_all(folder_);
  }

  std::string write(const fs::path& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  void add_model(const std::string& name, const std::string& settings) {
    write("models/" + name + ".gguf", settings + "\n");
  }
  ModelPool& pool() {
    if (!pool_) {
      pool_ = std::make_unique<ModelPool>(io_, options_);
      pool_->subscribe([this](const ModelEvent& event) {
        events_.push_back(event.model + " " + event.status + (event.progress ? " progress" : ""));
      });
    }
    return *pool_;
  }

  struct Acquired {
    UpstreamLease lease = {};
    int status = 0;  // of the error
    std::string error = {};
    bool is_done = false;
  };
  std::shared_ptr<Acquired> start_acquire(const std::string& model, AcquireOptions options = {}) {
    auto result = std::make_shared<Acquired>();
    const auto run = [](ModelPool& from, std::string name, AcquireOptions with,
                        std::shared_ptr<Acquired> into) -> Awaitable<void> {
      try {
        into->lease = co_await from.acquire(name, with);
      } catch (const RequestError& error) {
        into->status = error.status();
        into->error = error.what();
      }
      into->is_done = true;
    };
    asio::co_spawn(io_, run(pool(), model, options, result), asio::detached);
    return result;
  }
  std::shared_ptr<Acquired> acquire(const std::string& model, AcquireOptions options = {}) {
    auto result = start_acquire(model, options);
    run_until([&] { return result->is_done; });
    return result;
  }
  template <typename Condition>
  void run_until(Condition condition, seconds limit = seconds(20)) {
    io_.restart();
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      io_.run_one_for(milliseconds(50));
    ASSERT_TRUE(condition());
  }
  std::string loaded_names() {
    std::string names;
    for (const LoadedModel& model : pool().loaded())
      if (model.ready) names += model.name;
    return names;
  }
  pid_t pid_of(const std::string& model) {
    pid_t pid = 0;
    bool is_done = false;
    const auto run = [&]() -> Awaitable<void> {
      const ModelStatus status = co_await pool().status(model);
      pid = status.pid;
      is_done = true;
    };
    asio::co_spawn(io_, run(), asio::detached);
    run_until([&] { return is_done; });
    return pid;
  }
  int calls(const std::string& word) {
    std::ifstream file(folder_ / "calls");
    int count = 0;
    for (std::string line; std::getline(file, line);)
      count += line.find(word) != std::string::npos ? 1 : 0;
    return count;
  }

  fs::path folder_;
  asio::io_context io_;
  ModelPoolOptions options_;
  std::unique_ptr<ModelPool> pool_;
  std::vector<std::string> events_;
};

TEST_F(ModelPoolTest, LoadsByNameWithItsOwnPlanAndReportsProgress) {
  const auto first = acquire("a");
  EXPECT_EQ(first->error, "");
  EXPECT_EQ(first->lease.model(), "a");
  EXPECT_GT(first->lease.generation(), 0);
  EXPECT_THAT(events_,
              testing::ElementsAre("a loading", "a loading", "a loading progress", "a loaded"));
  const auto second = acquire("a:latest");
  EXPECT_EQ(second->lease.socket(), first->lease.socket());
  EXPECT_EQ(calls("--plan-only"), 1);
  EXPECT_EQ(calls("--kv-memory=1048576"), 1);
  EXPECT_EQ(calls("--behind-front"), 1);
  ASSERT_EQ(pool().loaded().size(), 1);
  EXPECT_EQ(pool().loaded()[0].open_requests, 2);
  EXPECT_LE(pool().used_bytes(), pool().budget_bytes());
}

TEST_F(ModelPoolTest, UnloadsTheLeastRecentlyUsedForAnother) {
  acquire("a");
  acquire("b");
  acquire("a");
  const auto c = acquire("c");
  EXPECT_EQ(c->error, "");
  EXPECT_EQ(loaded_names(), "ac");
}

TEST_F(ModelPoolTest, WaitsForBusyModelsUntilTheTimeLimit) {
  options_.load_timeout = milliseconds(300);
  options_.models_max = 1;
  const auto a = acquire("a");
  const auto b = acquire("b");
  EXPECT_EQ(b->status, 503);
  EXPECT_THAT(b->error, HasSubstr("--load-timeout"));
  EXPECT_EQ(loaded_names(), "a");
}

TEST_F(ModelPoolTest, RequestsShareOneLoad) {
  add_model("slow", "SLOW=0.3");
  std::vector<std::shared_ptr<Acquired>> all;
  for (int i = 0; i < 5; ++i) all.push_back(start_acquire("slow"));
  run_until([&] { return std::ranges::all_of(all, [](const auto& one) { return one->is_done; }); });
  for (const auto& one : all) EXPECT_EQ(one->error, "");
  EXPECT_EQ(calls("slow.gguf"), 2);  // its plan and its process
}

TEST_F(ModelPoolTest, UnknownNamesAreNotFoundAndNewFilesAre) {
  EXPECT_EQ(acquire("d")->status, 404);
  add_model("d", "");
  EXPECT_EQ(acquire("d")->error, "");
}

TEST_F(ModelPoolTest, AFailedLoadIsToldAndNotRepeatedAtOnce) {
  add_model("bad", "LOAD_ERROR='the file is damaged'");
  const auto first = acquire("bad");
  EXPECT_EQ(first->status, 400);
  EXPECT_THAT(first->error, HasSubstr("the file is damaged"));
  EXPECT_THAT(acquire("bad")->error, HasSubstr("the file is damaged"));
  EXPECT_EQ(calls("bad.gguf"), 2);
  add_model("crash", "CRASH=1");
  const auto crash = acquire("crash");
  EXPECT_EQ(crash->status, 503);
  EXPECT_THAT(crash->error, HasSubstr("exited with status 9: last words"));
  add_model("unplanned", "PLAN_ERROR='unknown architecture'");
  EXPECT_THAT(acquire("unplanned")->error, HasSubstr("unknown architecture"));
  EXPECT_EQ(pool().used_bytes(), 0);
}

TEST_F(ModelPoolTest, AModelThatCanNeverFitIsRefused) {
  add_model("huge", "FIXED=99999999");
  const auto huge = acquire("huge");
  EXPECT_EQ(huge->status, 400);
  EXPECT_THAT(huge->error, HasSubstr("--memory-fraction"));
  EXPECT_EQ(calls("--uds"), 0);
}

TEST_F(ModelPoolTest, KeepAliveOfTheRequestAndOfThePool) {
  options_.keep_alive = {.time = milliseconds(200)};
  { const auto a = acquire("a"); }
  { const auto b = acquire("b", {.keep_alive = KeepAlive{.time = std::nullopt}}); }
  run_until([&] { return loaded_names() == "b"; });
  { const auto b = acquire("b", {.keep_alive = KeepAlive{.time = milliseconds(0)}}); }
  run_until([&] { return pool().loaded().empty(); });
  EXPECT_EQ(pool().used_bytes(), 0);
}

TEST_F(ModelPoolTest, ADeadProcessIsStartedAgainAndTwiceDeadRunsOneRequestAtATime) {
  auto first = acquire("a");
  auto other = acquire("a");
  const uint64_t generation = first->lease.generation();
  for (int death = 1; death <= 2; ++death) {
    ::kill(pid_of("a"), SIGKILL);
    run_until([&] { return loaded_names().empty(); });
    first = acquire("a", {.deaths = 1});
    EXPECT_EQ(first->error, "");
    EXPECT_GT(first->lease.generation(), generation);
  }
  other = start_acquire("a");
  run_until([] { return true; });
  io_.run_for(milliseconds(200));
  EXPECT_FALSE(other->is_done);
  first->lease = {};
  run_until([&] { return other->is_done; });
  EXPECT_EQ(other->error, "");
}

TEST_F(ModelPoolTest, UnloadAndLoadOnRequest) {
  bool is_done = false;
  const auto run = [&]() -> Awaitable<void> {
    co_await pool().load("a");
    is_done = true;
  };
  asio::co_spawn(io_, run(), asio::detached);
  run_until([&] { return is_done && loaded_names() == "a"; });
  std::string refusal;
  const auto stop = [&]() -> Awaitable<void> {
    co_await pool().unload("a");
    try {
      co_await pool().unload("b");
    } catch (const RequestError& error) {
      refusal = error.what();
    }
  };
  asio::co_spawn(io_, stop(), asio::detached);
  run_until([&] { return pool().loaded().empty() && !refusal.empty(); });
  EXPECT_THAT(refusal, HasSubstr("b is not loaded"));
}

// The lines that the log gets during its lifetime.
class LogOfPool {
 public:
  LogOfPool() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~LogOfPool() { spdlog::set_default_logger(before_); }

  int count(const std::string& words) const {
    std::istringstream lines(text_.str());
    int count = 0;
    for (std::string line; std::getline(lines, line);)
      count += line.find(words) != std::string::npos ? 1 : 0;
    return count;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(ModelPoolTest, AThousandRequestsToLoadAModelWaitAsOne) {
  options_.load_timeout = seconds(1);
  options_.models_max = 1;
  const auto a = acquire("a");
  const LogOfPool log;
  const auto run = [&]() -> Awaitable<void> {
    for (int i = 0; i < 1000; ++i) co_await pool().load("b");
  };
  asio::co_spawn(io_, run(), asio::detached);
  run_until([&] { return log.count("b was not loaded") > 0; });
  io_.run_for(milliseconds(100));
  EXPECT_EQ(log.count("b was not loaded"), 1);
}

TEST_F(ModelPoolTest, ShutDownEndsAllProcesses) {
  const auto a = acquire("a");
  const pid_t pid = pid_of("a");
  bool is_done = false;
  const auto stop = [&]() -> Awaitable<void> {
    co_await pool().shut_down();
    is_done = true;
  };
  asio::co_spawn(io_, stop(), asio::detached);
  run_until([&] { return is_done; });
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_EQ(acquire("a")->status, 503);
}

TEST_F(ModelPoolTest, CardsAndEventsHaveTheFormOfLlamaCppsRouter) {
  acquire("a");
  add_model("bad", "LOAD_ERROR='damaged'");
  acquire("bad");
  std::vector<ModelStatus> statuses;
  const auto run = [&]() -> Awaitable<void> { statuses = co_await pool().statuses(); };
  asio::co_spawn(io_, run(), asio::detached);
  run_until([&] { return !statuses.empty(); });
  std::map<std::string, api::Json> cards;
  for (const ModelStatus& status : statuses) cards[status.model->name] = model_card(status, 5);
  EXPECT_EQ(cards["a"]["status"]["value"], "loaded");
  EXPECT_EQ(cards["a"]["max_model_len"], 77);
  EXPECT_EQ(cards["a"]["architecture"]["input_modalities"], api::Json({"text", "image"}));
  EXPECT_FALSE(cards["b"].contains("architecture"));
  EXPECT_EQ(cards["b"]["status"], api::Json({{"value", "unloaded"}}));
  EXPECT_EQ(cards["bad"]["status"]["value"], "unloaded");
  EXPECT_EQ(cards["bad"]["status"]["failed"], true);
  EXPECT_EQ(cards["bad"]["status"]["exit_code"], 1);
  const ModelEvent loading{.model = "a",
                           .status = "loading",
                           .progress = ChildProgress{.stage = "load", .done = 1, .total = 2}};
  EXPECT_EQ(api::dump(event_json(loading, "a")),
            R"({"model":"a","event":"model_status","data":{"status":"loading","progress":)"
            R"({"stages":["text_model"],"current":"text_model","value":0.5}}})");
  const ModelEvent download{.model = "a",
                            .status = "loading",
                            .progress = ChildProgress{.stage = "download", .done = 1, .total = 2}};
  EXPECT_EQ(api::dump(event_json(download, "a")),
            R"({"model":"a","event":"download_progress","data":{"a":{"done":1,"total":2}}})");
}

}  // namespace
}  // namespace octavo::front

// How the control channel notices that a rank is gone, hangs or misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "base/error.h"
#include "distributed/cluster_messages.h"
#include "distributed/testing/cluster_fixture.h"

namespace octavo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

StepMessage empty_step(uint64_t number) { return {.number = number}; }

// A connection is reset if it is closed before everything was read.
auto is_closed() {
  return testing::AnyOf(HasSubstr("closed the connection"), HasSubstr("reset by peer"),
                        HasSubstr("Broken pipe"));
}

// A rank 0 that welcomes one worker and then does nothing.
struct SleepingRank0 {
  TcpListener listener{"127.0.0.1", 0};
  std::optional<TcpConnection> connection;

  std::unique_ptr<WorkerChannel> welcome(WorkerChannelOptions options) {
    options.port = listener.port();
    auto joining =
        std::async(std::launch::async, [options] { return WorkerChannel::connect(options); });
    const auto deadline = SocketClock::now() + std::chrono::seconds(10);
    connection = listener.accept(deadline);
    accept_as_server(*connection, test_secret(), {.kind = ConnectionKind::kControl}, deadline);
    receive_frame(*connection, FrameType::kHello, deadline);
    send(FrameType::kWelcome, encode(Welcome{.rank = 1, .size = 2, .addresses = {"", "x:1"}}));
    return joining.get();
  }
  void send(FrameType type, const std::vector<std::byte>& payload) {
    send_frame(*connection, type, payload, SocketClock::now() + std::chrono::seconds(10));
  }
};

TEST(ClusterFailure, AWorkerThatIsGoneEndsEveryWait) {
  TestCluster started = start_cluster(3);
  std::mutex mutex;
  std::vector<std::string> calls;
  started.cluster->on_failure([&](const std::string& why) {
    const std::lock_guard lock(mutex);
    calls.push_back(why);
  });
  started.cluster->announce(empty_step(0));
  auto waiting = std::async(std::launch::async, [&] {
    return error_of<ClusterError>([&] { started.cluster->wait_result(0); });
  });
  auto other = std::async(std::launch::async, [&] {
    return error_of<ClusterError>([&] {
      while (true) started.worker(2).next();
    });
  });
  EXPECT_EQ(waiting.wait_for(milliseconds(100)), std::future_status::timeout);
  started.workers[0].reset();
  const std::string why = waiting.get();
  EXPECT_THAT(why, AllOf(HasSubstr("rank 1 (127.0.0.1)"), is_closed()));
  EXPECT_EQ(started.cluster->failure(), why);
  EXPECT_THAT(other.get(), AllOf(HasSubstr("rank 0 (127.0.0.1)"), HasSubstr("rank 1")));
  EXPECT_TRUE(started.worker(2).failure());
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !calls.empty();
  }));
  EXPECT_THAT(calls, testing::ElementsAre(why));
  std::string late;
  started.cluster->on_failure([&](const std::string& text) { late = text; });
  EXPECT_EQ(late, why);

  EXPECT_THROW(started.cluster->announce(empty_step(1)), ClusterError);
  EXPECT_THROW(started.cluster->drop(), ClusterError);
  std::vector<std::byte> page(8);
  EXPECT_THROW(started.cluster->copy_out(1, 0, page), ClusterError);
  EXPECT_THROW(started.cluster->copy_in(1, 0, page), ClusterError);
  EXPECT_THROW(started.cluster->wait_ready(), ClusterError);
  EXPECT_THROW(started.cluster->make_links(), ClusterError);
}

TEST(ClusterFailure, ASilentWorkerIsNoticed) {
  TcpListener listener("127.0.0.1", 0);
  auto worker = std::async(std::launch::async,
                           [&, port = listener.port()] { return join_and_sleep(port, 1); });
  ClusterOptions options = test_cluster_options(2);
  options.silence = milliseconds(400);
  const auto cluster = Cluster::accept(std::move(listener), options);
  const TcpConnection connection = worker.get();
  const auto start = SocketClock::now();
  EXPECT_THAT(error_of<ClusterError>([&] { cluster->wait_ready(); }),
              HasSubstr("rank 1 (127.0.0.1) does not answer"));
  EXPECT_LT(SocketClock::now() - start, std::chrono::seconds(5));
}

TEST(ClusterFailure, HeartbeatsContinueWhileRanksAreBusy) {
  ClusterOptions options = test_cluster_options(2);
  options.silence = milliseconds(1000);
  TestCluster started = start_cluster(
      options, [](WorkerChannelOptions& worker) { worker.silence = milliseconds(1000); });
  std::this_thread::sleep_for(milliseconds(2500));
  EXPECT_FALSE(started.cluster->failure());
  EXPECT_FALSE(started.worker(1).failure());
}

TEST(ClusterFailure, AWorkerThatComputesNothingHangs) {
  ClusterOptions options = test_cluster_options(3);
  options.stall = milliseconds(400);
  const auto long_ago = SocketClock::now() - std::chrono::hours(1);
  std::atomic<SocketClock::time_point> stopped_at = long_ago;  // the epoch: it computes
  TestCluster started = start_cluster(options, [&](WorkerChannelOptions& worker) {
    worker.progress_age = [&] {
      const auto at = stopped_at.load();
      if (at == SocketClock::time_point()) return milliseconds(0);
      return std::chrono::duration_cast<milliseconds>(SocketClock::now() - at);
    };
  });
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_FALSE(started.cluster->failure());  // there was nothing to compute
  stopped_at = SocketClock::time_point();
  std::this_thread::sleep_for(milliseconds(200));  // until it was reported
  started.cluster->announce(empty_step(0));
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_FALSE(started.cluster->failure());  // a long step, but it moves
  stopped_at = SocketClock::now();
  EXPECT_THAT(error_of<ClusterError>([&] { started.cluster->wait_result(0); }),
              HasSubstr("rank 1 (127.0.0.1) hangs"));
}

TEST(ClusterFailure, AWorkerWithoutACounterReportsItsCalls) {
  ClusterOptions options = test_cluster_options(2);
  options.stall = milliseconds(400);
  TestCluster started = start_cluster(options);
  std::this_thread::sleep_for(milliseconds(800));
  started.cluster->announce(empty_step(0));
  started.worker(1).next();
  EXPECT_FALSE(started.cluster->failure());
  EXPECT_THAT(error_of<ClusterError>([&] { started.cluster->wait_result(0); }),
              HasSubstr("rank 1 (127.0.0.1) hangs"));
}

TEST(ClusterFailure, AWorkerNoticesThatRank0IsGoneOrSilent) {
  SleepingRank0 rank0;
  WorkerChannelOptions options = test_worker_options(0);
  options.silence = milliseconds(400);
  const auto silent = rank0.welcome(options);
  std::atomic<int> calls = 0;
  silent->on_failure([&](const std::string&) { ++calls; });
  EXPECT_THAT(error_of<ClusterError>([&] { silent->next(); }),
              HasSubstr("rank 0 (127.0.0.1) does not answer"));
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
  EXPECT_THROW(silent->send_result({}), ClusterError);
  EXPECT_THROW(silent->wait_setup(), ClusterError);
  EXPECT_TRUE(silent->has_next());  // and it throws

  const auto gone = rank0.welcome(test_worker_options(0));
  rank0.connection.reset();
  EXPECT_THAT(error_of<ClusterError>([&] { gone->wait_setup(); }), is_closed());
}

TEST(ClusterFailure, AShutdownEndsAWorkerThatWaitsForItsSetup) {
  TestCluster started = start_cluster(2);
  auto waiting = std::async(std::launch::async, [&] {
    return error_of<ClusterError>([&] { started.worker(1).wait_setup(); });
  });
  started.cluster->shutdown();
  EXPECT_THAT(waiting.get(), HasSubstr("ended the cluster before this rank was ready"));
}

TEST(ClusterFailure, AFailureEndsDrawsThatWaitForAMask) {
  SleepingRank0 rank0;
  const auto worker = rank0.welcome(test_worker_options(0));
  RandomMessages random(1);
  StepMessage step = step_that_draws(random, 0);
  step.batch.sampling[0].mask = std::make_shared<TokenMask>();
  rank0.send(FrameType::kStep, encode(step));
  const auto got = std::get<StepMessage>(worker->next());
  EXPECT_FALSE(got.batch.sampling[0].mask->is_set());
  rank0.connection.reset();
  got.batch.sampling[0].mask->wait();
  EXPECT_TRUE(worker->failure());
}

TEST(ClusterFailure, AFailureStopsTheLinks) {
  TestCluster started = start_cluster(2);
  auto joining = std::async(std::launch::async, [&] { return started.worker(1).make_links(); });
  const auto links = started.cluster->make_links();
  const auto worker_links = joining.get();
  auto receiving = std::async(std::launch::async, [&] {
    std::vector<std::byte> bytes(8);
    return error_of<LinkError>([&] { links->receive(1, bytes); });
  });
  EXPECT_EQ(receiving.wait_for(milliseconds(100)), std::future_status::timeout);
  started.workers[0].reset();  // its links remain open
  EXPECT_THAT(receiving.get(), HasSubstr("stopped"));
}

TEST(ClusterFailure, MessagesThatAreNotForAWorkerEndIt) {
  RandomMessages random(1);
  StepLimits limits = RandomMessages::limits();
  limits.vocab = 1;
  const std::vector<std::pair<FrameType, std::vector<std::byte>>> messages = {
      {FrameType::kResult, encode(ResultMessage{})},
      {FrameType::kHeartbeat, {}},
      {FrameType::kStep, encode(empty_step(1))},
      {FrameType::kStep, encode(step_that_draws(random, 0))},
      {FrameType::kSetup, {std::byte{1}}},
      {FrameType::kCopyOut, encode(PageRequest{.page = -1})}};
  for (const auto& [type, payload] : messages) {
    SleepingRank0 rank0;
    const auto worker = rank0.welcome(test_worker_options(0));
    worker->set_limits(limits);
    rank0.send(type, payload);
    EXPECT_THROW(worker->next(), ClusterError) << static_cast<int>(type);
  }
}

TEST(ClusterFailure, MessagesThatAreNotForRank0EndTheCluster) {
  const std::vector<std::pair<FrameType, std::vector<std::byte>>> messages = {
      {FrameType::kStep, encode(empty_step(0))},
      {FrameType::kResult, encode(ResultMessage{.number = 3})},
      {FrameType::kResult, {std::byte{1}}},
      {FrameType::kDropped, {}},
      {FrameType::kPage, encode_page_id(3)},
      {FrameType::kTaken, encode_taken(1)},
      {FrameType::kHeartbeat, {}}};
  for (const auto& [type, payload] : messages) {
    TcpListener listener("127.0.0.1", 0);
    auto joining = std::async(std::launch::async,
                              [port = listener.port()] { return join_and_sleep(port, 1); });
    const auto cluster = Cluster::accept(std::move(listener), test_cluster_options(2));
    TcpConnection worker = joining.get();
    send_frame(worker, type, payload, SocketClock::now() + std::chrono::seconds(10));
    EXPECT_THROW(cluster->wait_ready(), ClusterError) << static_cast<int>(type);
  }
}

TEST(ClusterFailure, AResultThatDoesNotFitItsStepEndsTheCluster) {
  TestCluster started = start_cluster(2);
  started.cluster->announce(empty_step(0));
  started.worker(1).send_result({.number = 0, .result = {.tokens = {1}}});
  EXPECT_THAT(error_of<ClusterError>([&] { started.cluster->wait_result(0); }),
              HasSubstr("does not fit its step"));
}

TEST(ClusterFailure, AResultWithTokensEndsAClusterWhoseRank0Draws) {
  TestCluster started = start_cluster(2);
  RandomMessages random(1);
  const StepMessage step = step_that_draws(random, 0);
  started.cluster->announce(step, StepPart::kLayers);
  ResultMessage result;
  result.result.tokens.resize(step.batch.sampling.size());
  started.worker(1).send_result(result);
  EXPECT_THAT(error_of<ClusterError>([&] { started.cluster->wait_result(0); }),
              HasSubstr("does not fit its step"));
}

TEST(ClusterFailure, TokensThatTheStepBeforeDoesNotDrawEndAWorker) {
  SleepingRank0 rank0;
  const auto worker = rank0.welcome(test_worker_options(0));
  worker->set_limits(RandomMessages::limits());
  RandomMessages random(1);
  const StepMessage first = step_that_draws(random, 0);
  const auto drawn = static_cast<int32_t>(first.batch.sampling.size());
  rank0.send(FrameType::kStep, encode(first));
  worker->next();
  StepMessage step = step_that_draws(random, 1);
  step.batch.waits_for_previous = true;
  step.batch.token_sources[0] = drawn - 1;
  rank0.send(FrameType::kStep, encode(step));
  EXPECT_EQ(std::get<StepMessage>(worker->next()).batch.token_sources[0], drawn - 1);
  step.number = 2;
  step.batch.token_sources[0] = static_cast<int32_t>(step.batch.sampling.size());
  rank0.send(FrameType::kStep, encode(step));
  EXPECT_THAT(error_of<ClusterError>([&] { worker->next(); }), HasSubstr("step 2 takes token"));
}

TEST(ClusterFailure, RanksThatDoNotFitAreRefused) {
  const auto refusals = [](const std::function<void(WorkerHello&)>& change) {
    TcpListener listener("127.0.0.1", 0);
    WorkerChannelOptions options = test_worker_options(listener.port(), 1);
    options.self.model_digest = "digest";
    change(options.self);
    auto worker = std::async(std::launch::async, [options] {
      return error_of<SetupError>([&] { WorkerChannel::connect(options); });
    });
    ClusterOptions own = test_cluster_options(2);
    own.self.model_digest = "digest";
    const std::string why =
        error_of<SetupError>([&] { Cluster::accept(std::move(listener), own); });
    EXPECT_THAT(worker.get(), HasSubstr(why));
    return why;
  };
  EXPECT_THAT(refusals([](WorkerHello& hello) { hello.version = "1.2.4"; }),
              AllOf(HasSubstr("rank 1 (127.0.0.1) runs Octavo 1.2.4"), HasSubstr("1.2.3")));
  EXPECT_THAT(refusals([](WorkerHello& hello) { hello.arithmetic = 5; }),
              HasSubstr("version 5 of the arithmetic"));
  EXPECT_THAT(refusals([](WorkerHello& hello) { hello.model_digest = "other"; }),
              HasSubstr("another model"));
}

TEST(ClusterFailure, AMissingWorkerIsNamed) {
  ClusterOptions options = test_cluster_options(4);
  options.join_deadline = milliseconds(300);
  TcpListener listener("127.0.0.1", 0);
  auto worker = std::async(std::launch::async, [port = listener.port()] {
    return error_of<SetupError>([&] { WorkerChannel::connect(test_worker_options(port, 2)); });
  });
  EXPECT_THAT(error_of<SetupError>([&] { Cluster::accept(std::move(listener), options); }),
              HasSubstr("ranks 1, 3 did not join"));
  EXPECT_THAT(worker.get(), HasSubstr("ranks 1, 3 did not join"));
  options.cancelled = [] { return true; };
  EXPECT_THAT(error_of<SetupError>([&] { Cluster::accept(TcpListener("127.0.0.1", 0), options); }),
              HasSubstr("stopped while waiting for ranks 1, 2, 3"));
}

TEST(ClusterFailure, AWorkerGivesUpWhenRank0DoesNotListen) {
  WorkerChannelOptions options = test_worker_options(TcpListener("127.0.0.1", 0).port());
  options.connect_deadline = milliseconds(300);
  EXPECT_THAT(error_of<SetupError>([&] { WorkerChannel::connect(options); }),
              HasSubstr("rank 0 was not reached"));
}

}  // namespace
}  // namespace octavo

#include "distributed/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "distributed/testing/cluster_fixture.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Command>
Command next_command(WorkerChannel& worker) {
  return std::get<Command>(worker.next());
}

// The mask of the only row of a step.
StepMessage masked_step(uint64_t number, const std::shared_ptr<TokenMask>& mask) {
  StepMessage step{.number = number};
  Batch& batch = step.batch;
  batch.tokens = {1};
  batch.token_sources = {-1};
  batch.positions = {0};
  batch.cu_seqlens_q = {0, 1};
  batch.context_lens = {1};
  batch.logit_rows = {0};
  batch.sampling = {{.mask = mask}};
  return step;
}

ResultMessage result_of(uint64_t number, TokenId token) {
  return {.number = number, .result = {.tokens = {token}}};
}

TEST(Cluster, SetsUpItsWorkers) {
  TestCluster started = start_cluster(3);
  EXPECT_EQ(started.cluster->size(), 3);
  ASSERT_EQ(started.cluster->workers().size(), 2u);
  EXPECT_EQ(started.cluster->workers()[1].rank, 2);
  EXPECT_EQ(started.cluster->workers()[1].isa, "avx2");
  EXPECT_EQ(started.worker(1).size(), 3);
  EXPECT_FALSE(started.worker(1).is_last());
  EXPECT_TRUE(started.worker(2).is_last());
  for (int rank : {1, 2}) started.cluster->send_setup(rank, "plan of " + std::to_string(rank));
  for (int rank : {2, 1}) {
    EXPECT_EQ(started.worker(rank).wait_setup(), "plan of " + std::to_string(rank));
    started.worker(rank).send_ready("ready " + std::to_string(rank));
  }
  EXPECT_THAT(started.cluster->wait_ready(), ElementsAre("ready 1", "ready 2"));
}

TEST(Cluster, GivesFreeRanksToWorkersWithoutOne) {
  TestCluster started = start_cluster(test_cluster_options(4), [](WorkerChannelOptions& options) {
    if (options.self.rank != 2) options.self.rank = 0;
  });
  std::vector<int> ranks;
  for (const auto& worker : started.workers) ranks.push_back(worker->rank());
  EXPECT_THAT(ranks, testing::UnorderedElementsAre(1, 2, 3));
}

TEST(Cluster, ReportsAWorkerThatCannotStart) {
  TestCluster started = start_cluster(3);
  started.worker(1).send_ready("");
  started.worker(2).send_error("no memory for layer 7");
  started.workers[1].reset();
  EXPECT_THAT(error_of<SetupError>([&] { started.cluster->wait_ready(); }),
              testing::AllOf(HasSubstr("rank 2 (127.0.0.1)"), HasSubstr("no memory for layer 7")));
}

TEST(Cluster, AnnouncesStepsAndReturnsTheLastRanksResults) {
  TestCluster started = start_cluster(3);
  for (const auto& worker : started.workers) worker->set_limits(RandomMessages::limits());
  started.cluster->set_limits(RandomMessages::limits());
  RandomMessages random(1);
  std::vector<StepMessage> steps;
  for (uint64_t number = 0; number < 20; ++number) {
    steps.push_back(step_that_draws(random, number));
    started.cluster->announce(steps.back());
  }
  for (uint64_t number = 0; number < 20; ++number) {
    const auto& step = steps[number];
    for (int rank : {1, 2}) {
      const auto got = next_command<StepMessage>(started.worker(rank));
      EXPECT_EQ(got.number, number);
      EXPECT_EQ(got.batch.tokens, step.batch.tokens);
      EXPECT_EQ(got.batch.sampling.size(), step.batch.sampling.size());
      EXPECT_EQ(got.batch.sampling[0].seed, rank == 2 ? step.batch.sampling[0].seed : 0);
    }
    ResultMessage result = random.result(step);
    result.error.reset();
    result.result = random.result(step).result;
    while (result.result.tokens.empty()) result = random.result(step);
    started.worker(2).send_result(result);
    started.worker(1).send_result({.number = number});
    const ResultMessage received = started.cluster->wait_result(number);
    EXPECT_FALSE(received.error);
    EXPECT_EQ(received.result.tokens, result.result.tokens);
    EXPECT_EQ(received.result.hidden.values, result.result.hidden.values);
  }
}

TEST(Cluster, AnnouncesStepsFromWhichThisRankDraws) {
  TestCluster started = start_cluster(3);
  for (const auto& worker : started.workers) worker->set_limits(RandomMessages::limits());
  started.cluster->set_limits(RandomMessages::limits());
  RandomMessages random(2);
  int drawn = 0;
  for (uint64_t number = 0; number < 20; ++number) {
    StepMessage step = random.step_that_waits(number, drawn);
    while (step.batch.sampling.empty()) step = random.step_that_waits(number, drawn);
    if (number == 0) step.batch.waits_for_previous = false;
    for (RowSampling& row : step.batch.sampling) row.mask = std::make_shared<TokenMask>();
    started.cluster->announce(step, StepPart::kLayers);
    for (int rank : {1, 2}) {
      const auto got = next_command<StepMessage>(started.worker(rank));
      EXPECT_EQ(got.batch.token_sources, step.batch.token_sources);
      EXPECT_EQ(got.batch.waits_for_previous, step.batch.waits_for_previous);
      ASSERT_EQ(got.batch.sampling.size(), step.batch.sampling.size());
      for (const RowSampling& row : got.batch.sampling) {
        EXPECT_EQ(row.seed, 0u);
        EXPECT_EQ(row.mask, nullptr);
      }
      started.worker(rank).send_result({.number = number});
    }
    const ResultMessage result = started.cluster->wait_result(number);
    EXPECT_FALSE(result.error);
    EXPECT_TRUE(result.result.tokens.empty());
    drawn = static_cast<int>(step.batch.sampling.size());
  }
  started.cluster->announce(step_that_draws(random, 20), StepPart::kLayers);
  for (int rank : {1, 2}) {
    next_command<StepMessage>(started.worker(rank));
    started.worker(rank).send_result({.number = 20, .error = rank == 2 ? "late" : "first"});
  }
  EXPECT_EQ(started.cluster->wait_result(20).error, "rank 1 (127.0.0.1): first");
  EXPECT_FALSE(started.cluster->failure());
  for (const auto& worker : started.workers) EXPECT_FALSE(worker->failure());
}

TEST(Cluster, SendsNoMasksOfStepsFromWhichThisRankDraws) {
  ClusterOptions options = test_cluster_options(2);
  options.heartbeat = milliseconds(60'000);
  TcpListener listener("127.0.0.1", 0);
  auto joining =
      std::async(std::launch::async, [port = listener.port()] { return join_and_sleep(port, 1); });
  const auto cluster = Cluster::accept(std::move(listener), options);
  TcpConnection worker = joining.get();
  const auto mask = std::make_shared<TokenMask>();
  mask->set({1});
  cluster->announce(masked_step(0, mask), StepPart::kLayers);
  std::this_thread::sleep_for(milliseconds(150));
  cluster->announce(masked_step(1, mask), StepPart::kDraws);
  const auto deadline = SocketClock::now() + std::chrono::seconds(10);
  for (const FrameType type : {FrameType::kStep, FrameType::kStep, FrameType::kMask})
    EXPECT_NO_THROW(receive_frame(worker, type, deadline)) << static_cast<int>(type);
}

TEST(Cluster, AResultWaitsForAllRanksAndNamesTheFirstThatFailed) {
  TestCluster started = start_cluster(4);
  started.cluster->announce(masked_step(0, nullptr));
  started.worker(3).send_result(result_of(0, 5));
  started.worker(2).send_result({.number = 0, .error = "it failed here too"});
  auto waiting = std::async(std::launch::async, [&] { return started.cluster->wait_result(0); });
  EXPECT_EQ(waiting.wait_for(milliseconds(100)), std::future_status::timeout);
  started.worker(1).send_result({.number = 0, .error = "a kernel failed"});
  const ResultMessage result = waiting.get();
  EXPECT_EQ(result.error, "rank 1 (127.0.0.1): a kernel failed");
  EXPECT_TRUE(result.result.tokens.empty());
  EXPECT_FALSE(started.cluster->failure());
}

TEST(Cluster, SendsMasksWhenTheyAreSet) {
  TestCluster started = start_cluster(2);
  const auto allowed = std::make_shared<TokenMask>();
  const auto failed = std::make_shared<TokenMask>();
  started.cluster->announce(masked_step(0, allowed));
  started.cluster->announce(masked_step(1, failed));
  const auto first = next_command<StepMessage>(started.worker(1)).batch.sampling[0].mask;
  const auto second = next_command<StepMessage>(started.worker(1)).batch.sampling[0].mask;
  std::this_thread::sleep_for(milliseconds(150));
  EXPECT_FALSE(first->is_set());
  allowed->set({6, 7});
  EXPECT_THAT(first->wait(), ElementsAre(6u, 7u));
  EXPECT_FALSE(second->is_set());
  failed->fail("the grammar ended");
  EXPECT_EQ(second->failure(), "the grammar ended");
}

TEST(Cluster, DropsStepsAndStartsAgainAtZero) {
  TestCluster started = start_cluster(2);
  const auto old_mask = std::make_shared<TokenMask>();
  started.cluster->announce(masked_step(0, old_mask));
  started.cluster->announce(masked_step(1, nullptr));
  WorkerChannel& worker = started.worker(1);
  const auto blocked = next_command<StepMessage>(worker).batch.sampling[0].mask;
  EXPECT_FALSE(worker.drop_follows());
  auto dropping = std::async(std::launch::async, [&] { started.cluster->drop(); });
  blocked->wait();  // the drop sets it
  EXPECT_TRUE(eventually([&] { return worker.drop_follows(); }));
  worker.send_result(result_of(0, 1));
  EXPECT_EQ(next_command<StepMessage>(worker).number, 1u);
  worker.send_result(result_of(1, 1));
  EXPECT_EQ(dropping.wait_for(milliseconds(50)), std::future_status::timeout);
  next_command<WorkerChannel::Drop>(worker);
  EXPECT_FALSE(worker.drop_follows());
  worker.acknowledge_drop();
  dropping.get();

  const auto new_mask = std::make_shared<TokenMask>();
  started.cluster->announce(masked_step(0, new_mask));
  const auto mask = next_command<StepMessage>(worker).batch.sampling[0].mask;
  old_mask->set({1});
  std::this_thread::sleep_for(milliseconds(150));
  EXPECT_FALSE(mask->is_set());
  new_mask->set({2});
  EXPECT_THAT(mask->wait(), ElementsAre(2u));
  worker.send_result(result_of(0, 9));
  EXPECT_THAT(started.cluster->wait_result(0).result.tokens, ElementsAre(9));
}

TEST(Cluster, CopiesPages) {
  TestCluster started = start_cluster(2);
  std::vector<std::byte> page(3u << 20);
  for (size_t i = 0; i < page.size(); ++i) page[i] = static_cast<std::byte>(i * 7 % 251);
  std::vector<std::byte> out(page.size());
  auto copying = std::async(std::launch::async, [&] {
    started.cluster->copy_in(1, 17, page);
    started.cluster->copy_out(1, 18, out);
  });
  const auto in = next_command<WorkerChannel::CopyIn>(started.worker(1));
  EXPECT_EQ(in.page, 17);
  EXPECT_EQ(in.bytes, page);
  const auto wanted = next_command<WorkerChannel::CopyOut>(started.worker(1));
  EXPECT_EQ(wanted.page, 18);
  EXPECT_EQ(wanted.bytes, out.size());
  started.worker(1).send_page(18, in.bytes);
  copying.get();
  EXPECT_EQ(out, page);
}

TEST(Cluster, PagesThatAWorkerHasNotTakenAreBounded) {
  TestCluster started = start_cluster(2);
  const std::vector<std::byte> page(30u << 20);
  auto copying = std::async(std::launch::async, [&] {
    for (PageId id = 0; id < 4; ++id) started.cluster->copy_in(1, id, page);
  });
  EXPECT_EQ(copying.wait_for(milliseconds(500)), std::future_status::timeout);
  for (PageId id = 0; id < 4; ++id)
    EXPECT_EQ(next_command<WorkerChannel::CopyIn>(started.worker(1)).page, id);
  copying.get();
}

TEST(Cluster, LinksConnectNeighbours) {
  TestCluster started = start_cluster(3);
  auto one = std::async(std::launch::async, [&] { return started.worker(1).make_links(); });
  auto two = std::async(std::launch::async, [&] { return started.worker(2).make_links(); });
  const auto links0 = started.cluster->make_links();
  const auto links1 = one.get();
  const auto links2 = two.get();
  const std::vector<std::byte> sent(100, std::byte{7});
  std::vector<std::byte> received(100);
  links0->send(1, sent);
  links1->receive(0, received);
  links1->send(2, received);
  std::ranges::fill(received, std::byte{0});
  links2->receive(1, received);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(links2->rank(), 2);
  EXPECT_EQ(links2->size(), 3);
}

TEST(Cluster, LinksConnectAllPairs) {
  TestCluster started = start_cluster(4);
  std::vector<std::future<std::unique_ptr<TensorLinks>>> making;
  for (int rank : {1, 2, 3})
    making.push_back(std::async(std::launch::async,
                                [&, rank] { return started.worker(rank).make_links(true); }));
  std::vector<std::unique_ptr<TensorLinks>> links;
  links.push_back(started.cluster->make_links(true));
  for (auto& made : making) links.push_back(made.get());
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      const std::vector<std::byte> sent(100, static_cast<std::byte>(10 * from + to));
      std::vector<std::byte> received(100);
      links[static_cast<size_t>(from)]->send(to, sent);
      links[static_cast<size_t>(to)]->receive(from, received);
      EXPECT_EQ(received, sent);
    }
  }
}

TEST(Cluster, ShutsDownInOrder) {
  TestCluster started = start_cluster(2);
  started.worker(1).send_ready("{}");
  started.cluster->wait_ready();
  started.cluster->announce(masked_step(0, nullptr));
  auto worker = std::async(std::launch::async, [&] {
    next_command<StepMessage>(started.worker(1));
    next_command<WorkerChannel::Shutdown>(started.worker(1));
    std::this_thread::sleep_for(milliseconds(100));
    const auto failure = started.worker(1).failure();
    started.workers[0].reset();
    return failure;
  });
  started.cluster->shutdown();
  EXPECT_EQ(worker.get(), std::nullopt);
  EXPECT_FALSE(started.cluster->failure());
}

}  // namespace
}  // namespace octavo

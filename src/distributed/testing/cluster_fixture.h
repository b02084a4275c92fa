// cluster_fixture.h - a cluster whose ranks are in one process, for tests. No MLX.
#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/frame.h"
#include "distributed/handshake.h"
#include "distributed/tcp_listener.h"
#include "distributed/testing/random_messages.h"
#include "distributed/worker_channel.h"

namespace octavo {

using std::chrono::milliseconds;

// Joining and refusals are logged.
inline const bool kQuiet = (spdlog::set_level(spdlog::level::err), true);

inline ClusterSecret test_secret() { return ClusterSecret("the secret of the test cluster"); }
inline WorkerHello test_hello(int rank = 0) {
  return {.rank = rank, .version = "1.2.3", .arithmetic = 4, .isa = "avx2", .memory_bytes = 1};
}

// Heartbeats are quick, and deadlines long enough for a busy machine.
inline ClusterOptions test_cluster_options(int size) {
  return {.size = size,
          .secret = test_secret(),
          .self = test_hello(),
          .join_deadline = milliseconds(20'000),
          .handshake_deadline = milliseconds(5'000),
          .heartbeat = milliseconds(20),
          .silence = milliseconds(10'000)};
}

inline WorkerChannelOptions test_worker_options(uint16_t port, int rank = 0) {
  return {.host = "127.0.0.1",
          .port = port,
          .secret = test_secret(),
          .self = test_hello(rank),
          .connect_deadline = milliseconds(20'000),
          .join_deadline = milliseconds(20'000),
          .handshake_deadline = milliseconds(5'000),
          .heartbeat = milliseconds(20),
          .silence = milliseconds(10'000)};
}

struct TestCluster {
  std::unique_ptr<Cluster> cluster;
  std::vector<std::unique_ptr<WorkerChannel>> workers;  // by rank - 1

  WorkerChannel& worker(int rank) { return *workers.at(static_cast<size_t>(rank - 1)); }
};

// `change` adapts the options of each worker.
inline TestCluster start_cluster(
    ClusterOptions options, const std::function<void(WorkerChannelOptions&)>& change = nullptr) {
  TcpListener listener("127.0.0.1", 0);
  std::vector<std::future<std::unique_ptr<WorkerChannel>>> joining;
  for (int rank = 1; rank < options.size; ++rank) {
    WorkerChannelOptions worker = test_worker_options(listener.port(), rank);
    if (change) change(worker);
    joining.push_back(std::async(std::launch::async, [worker = std::move(worker)] {
      return WorkerChannel::connect(worker);
    }));
  }
  TestCluster started;
  started.cluster = Cluster::accept(std::move(listener), std::move(options));
  for (auto& worker : joining) started.workers.push_back(worker.get());
  return started;
}

inline TestCluster start_cluster(int size) { return start_cluster(test_cluster_options(size)); }

// Joins as a worker does, and then does nothing.
inline TcpConnection join_and_sleep(uint16_t port, int rank) {
  const auto deadline = SocketClock::now() + std::chrono::seconds(10);
  TcpConnection connection = TcpConnection::connect("127.0.0.1", port, deadline);
  open_as_client(connection, test_secret(), {.kind = ConnectionKind::kControl}, deadline);
  WorkerHello hello = test_hello(rank);
  hello.address = "127.0.0.1:1";
  send_frame(connection, FrameType::kHello, encode(hello), deadline);
  receive_frame(connection, FrameType::kWelcome, deadline);
  return connection;
}

// A step with rows to draw from, that random limits allow.
inline StepMessage step_that_draws(RandomMessages& random, uint64_t number) {
  StepMessage step = random.step(number);
  while (step.batch.sampling.empty()) step = random.step(number);
  return step;
}

// The text of the error that a call throws; empty: none.
template <typename Error, typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// False if it did not become true within 10 s.
template <typename Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

}  // namespace octavo

#include "distributed/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "distributed/testing/cluster_fixture.h"

namespace octavo {
namespace {

using testing::HasSubstr;

SocketClock::time_point in_10_s() { return SocketClock::now() + std::chrono::seconds(10); }

Opening control_opening() { return {.kind = ConnectionKind::kControl}; }

// Two connected ends.
struct ConnectedPair {
  TcpListener listener{"127.0.0.1", 0};
  TcpConnection client = TcpConnection::connect("127.0.0.1", listener.port(), in_10_s());
  TcpConnection server = *listener.accept(in_10_s());
};

// The errors of both ends; empty: it succeeded.
std::pair<std::string, std::string> handshake_errors(ConnectedPair& pair,
                                                     const ClusterSecret& client,
                                                     const ClusterSecret& server,
                                                     const Opening& opening = control_opening()) {
  auto accepting = std::async(std::launch::async, [&] {
    return error_of<ClusterError>([&] {
      accept_as_server(pair.server, server, {.kind = ConnectionKind::kControl}, in_10_s());
    });
  });
  std::string error =
      error_of<ClusterError>([&] { open_as_client(pair.client, client, opening, in_10_s()); });
  return {error, accepting.get()};
}

TEST(Handshake, SucceedsWithTheSameSecret) {
  ConnectedPair pair;
  EXPECT_EQ(handshake_errors(pair, test_secret(), test_secret()),
            std::pair(std::string(), std::string()));
}

TEST(Handshake, AnotherSecretIsRefusedByBothEnds) {
  ConnectedPair pair;
  const auto [client, server] =
      handshake_errors(pair, ClusterSecret("quite another secret"), test_secret());
  EXPECT_THAT(client, HasSubstr("the secret is not the one of this cluster"));
  EXPECT_THAT(server, HasSubstr("the secret is not the one of this cluster"));
}

TEST(Handshake, OtherKindsAndSessionsAreRefused) {
  ConnectedPair pair;
  EXPECT_THAT(
      handshake_errors(pair, test_secret(), test_secret(), {.kind = ConnectionKind::kLink}).first,
      HasSubstr("this port is for other connections"));
  ConnectedPair other;
  EXPECT_THAT(handshake_errors(other, test_secret(), test_secret(),
                               {.kind = ConnectionKind::kControl, .session = "x"})
                  .first,
              HasSubstr("belongs to another cluster"));
}

TEST(Handshake, AServerWithoutTheSecretIsNoticed) {
  ConnectedPair pair;
  auto client = std::async(std::launch::async, [&] {
    return error_of<ClusterError>(
        [&] { open_as_client(pair.client, test_secret(), control_opening(), in_10_s()); });
  });
  receive_frame(pair.server, FrameType::kOpening, in_10_s());
  send_frame(pair.server, FrameType::kChallenge, std::vector<std::byte>(32), in_10_s());
  // The client's own proof, reflected.
  const Frame proof = receive_frame(pair.server, FrameType::kClientProof, in_10_s());
  send_frame(pair.server, FrameType::kServerProof, proof.payload, in_10_s());
  EXPECT_THAT(client.get(), HasSubstr("does not know the cluster's secret"));
}

TEST(Handshake, AProofIsNotAcceptedTwice) {
  // A proxy records what a client sends.
  ConnectedPair outside;
  ConnectedPair inside;
  auto client = std::async(std::launch::async, [&] {
    return error_of<ClusterError>(
        [&] { open_as_client(outside.client, test_secret(), control_opening(), in_10_s()); });
  });
  auto server = std::async(std::launch::async, [&] {
    return error_of<ClusterError>(
        [&] { accept_as_server(inside.server, test_secret(), control_opening(), in_10_s()); });
  });
  const auto pass = [](TcpConnection& from, TcpConnection& to, FrameType type) {
    const Frame frame = receive_frame(from, type, in_10_s());
    send_frame(to, type, frame.payload, in_10_s());
    return frame.payload;
  };
  const auto opening = pass(outside.server, inside.client, FrameType::kOpening);
  pass(inside.client, outside.server, FrameType::kChallenge);
  const auto proof = pass(outside.server, inside.client, FrameType::kClientProof);
  pass(inside.client, outside.server, FrameType::kServerProof);
  EXPECT_EQ(client.get(), "");
  EXPECT_EQ(server.get(), "");

  ConnectedPair again;
  auto replayed = std::async(std::launch::async, [&] {
    return error_of<ClusterError>(
        [&] { accept_as_server(again.server, test_secret(), control_opening(), in_10_s()); });
  });
  send_frame(again.client, FrameType::kOpening, opening, in_10_s());
  receive_frame(again.client, FrameType::kChallenge, in_10_s());
  send_frame(again.client, FrameType::kClientProof, proof, in_10_s());
  EXPECT_THAT(replayed.get(), HasSubstr("the secret is not the one of this cluster"));
}

TEST(Handshake, AnotherVersionIsRefusedWithAReason) {
  ConnectedPair pair;
  auto server = std::async(std::launch::async, [&] {
    return error_of<WireError>(
        [&] { accept_as_server(pair.server, test_secret(), control_opening(), in_10_s()); });
  });
  auto bytes = frame_bytes(FrameType::kOpening, encode_opening({}, {}));
  bytes[4] = std::byte{kProtocolVersion + 1};
  pair.client.send(bytes, in_10_s());
  const std::string wanted = "the peer speaks version " + std::to_string(kProtocolVersion + 1);
  EXPECT_THAT(server.get(), HasSubstr(wanted));
  EXPECT_THAT(
      error_of<ClusterError>([&] { receive_frame(pair.client, FrameType::kChallenge, in_10_s()); }),
      HasSubstr(wanted));
}

TEST(Handshake, SlowPeersMissTheDeadline) {
  ConnectedPair pair;
  const auto start = SocketClock::now();
  auto server = std::async(std::launch::async, [&] {
    return error_of<ClusterError>([&] {
      accept_as_server(pair.server, test_secret(), control_opening(),
                       SocketClock::now() + milliseconds(300));
    });
  });
  const auto bytes = frame_bytes(FrameType::kOpening, encode_opening({}, {}));
  for (size_t i = 0; i < 10; ++i) {
    pair.client.send(std::span(bytes).subspan(i, 1), in_10_s());
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_THAT(server.get(), HasSubstr("does not answer in time"));
  EXPECT_LT(SocketClock::now() - start, std::chrono::seconds(5));
}

TEST(Lobby, StrangersDoNotKeepWorkersOut) {
  TcpListener listener("127.0.0.1", 0);
  const uint16_t port = listener.port();
  std::vector<TcpConnection> strangers;
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(TcpConnection::connect("127.0.0.1", port, in_10_s()));
    std::vector<std::byte> bytes(i % 3 == 0 ? 0 : 100);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (i % 3 == 2) bytes = frame_bytes(FrameType::kOpening, bytes);
    strangers.back().send(bytes, in_10_s());
  }
  ClusterOptions options = test_cluster_options(2);
  options.handshake_deadline = milliseconds(500);
  auto wrong = std::async(std::launch::async, [port] {
    WorkerChannelOptions worker = test_worker_options(port, 1);
    worker.secret = ClusterSecret("quite another secret");
    return error_of<SetupError>([&] { WorkerChannel::connect(worker); });
  });
  auto right = std::async(std::launch::async, [&, port] {
    wrong.wait();
    return WorkerChannel::connect(test_worker_options(port, 1));
  });
  const auto cluster = Cluster::accept(std::move(listener), options);
  EXPECT_THAT(wrong.get(), HasSubstr("the secret is not the one of this cluster"));
  EXPECT_EQ(right.get()->rank(), 1);
}

TEST(Lobby, AWorkerMayLeaveAndComeBack) {
  TcpListener listener("127.0.0.1", 0);
  const uint16_t port = listener.port();
  auto workers = std::async(std::launch::async, [port] {
    {
      const auto deadline = in_10_s();
      TcpConnection early = TcpConnection::connect("127.0.0.1", port, deadline);
      open_as_client(early, test_secret(), control_opening(), deadline);
      WorkerHello hello = test_hello(1);
      hello.address = "127.0.0.1:1";
      send_frame(early, FrameType::kHello, encode(hello), deadline);
      std::this_thread::sleep_for(milliseconds(300));
      EXPECT_THAT(
          error_of<SetupError>([&] { WorkerChannel::connect(test_worker_options(port, 1)); }),
          HasSubstr("rank 1 (127.0.0.1) has joined already"));
      EXPECT_THAT(
          error_of<SetupError>([&] { WorkerChannel::connect(test_worker_options(port, 3)); }),
          HasSubstr("rank 3 is not below the number of ranks, 3"));
    }
    std::this_thread::sleep_for(milliseconds(300));
    auto one = std::async(std::launch::async,
                          [port] { return WorkerChannel::connect(test_worker_options(port, 1)); });
    auto two = WorkerChannel::connect(test_worker_options(port, 2));
    return std::pair(one.get(), std::move(two));
  });
  const auto cluster = Cluster::accept(std::move(listener), test_cluster_options(3));
  EXPECT_EQ(workers.get().first->rank(), 1);
}

TEST(TcpListener, PublicAddressesAreRefusedWithoutTheOption) {
  EXPECT_THAT(error_of<SetupError>([] { TcpListener("0.0.0.0", 0); }),
              HasSubstr("is not a private address"));
  EXPECT_NO_THROW(TcpListener("0.0.0.0", 0, true));
  EXPECT_THAT(error_of<SetupError>([] { TcpConnection::connect("203.0.113.1", 9, in_10_s()); }),
              HasSubstr("public address"));
  const TcpListener first("127.0.0.1", 0);
  EXPECT_THAT(error_of<SetupError>([&] { TcpListener("127.0.0.1", first.port()); }),
              HasSubstr("cannot listen on"));
}

TEST(ClusterSecret, IsReadFromAFileOrAVariable) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("octavo-cluster-secret-" + std::to_string(::getpid()));
  std::ofstream(path) << "a secret of enough characters\n";
  const ClusterSecret expected("a secret of enough characters");
  EXPECT_TRUE(expected.proves(ClusterSecret::from_file("--flag", path).proof("x"), "x"));
  EXPECT_FALSE(expected.proves(ClusterSecret::from_file("--flag", path).proof("x"), "y"));
  std::ofstream(path) << "short\n";
  EXPECT_THAT(error_of<SetupError>([&] { ClusterSecret::from_file("--flag", path); }),
              HasSubstr("--flag: the secret has fewer than 16 characters"));
  std::filesystem::remove(path);
  EXPECT_THAT(error_of<SetupError>([&] { ClusterSecret::from_file("--flag", path); }),
              HasSubstr("--flag: cannot read"));
  ::setenv("TEST_CLUSTER_SECRET", "a secret of enough characters", 1);
  EXPECT_TRUE(
      expected.proves(ClusterSecret::from_environment("TEST_CLUSTER_SECRET").proof("x"), "x"));
  ::unsetenv("TEST_CLUSTER_SECRET");
  EXPECT_THROW(ClusterSecret::from_environment("TEST_CLUSTER_SECRET"), SetupError);
}

}  // namespace
}  // namespace octavo

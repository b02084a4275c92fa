#include "distributed/tcp_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "distributed/memory_links.h"
#include "distributed/testing/cluster_fixture.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using Links = std::vector<std::unique_ptr<TensorLinks>>;

struct LinkSetup {
  int size = 2;
  milliseconds deadline{10'000};
  bool all_pairs = false;
};

Links make_test_links(const LinkSetup& setup) {
  std::vector<TcpListener> listeners;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < setup.size; ++rank) {
    listeners.emplace_back("127.0.0.1", 0);
    addresses.push_back(listeners.back().address());
  }
  std::vector<std::future<std::unique_ptr<TensorLinks>>> making;
  for (int rank = 0; rank < setup.size; ++rank) {
    making.push_back(std::async(std::launch::async, [&, rank] {
      return make_tcp_links({.rank = rank,
                             .size = setup.size,
                             .addresses = addresses,
                             .listener = &listeners[static_cast<size_t>(rank)],
                             .secret = test_secret(),
                             .session = "session",
                             .all_pairs = setup.all_pairs,
                             .connect_deadline = milliseconds(10'000),
                             .deadline = setup.deadline});
    }));
  }
  Links links;
  for (auto& made : making) links.push_back(made.get());
  return links;
}

std::vector<std::byte> pattern(size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + static_cast<size_t>(seed));
  return bytes;
}

// Every linked pair sends to each other at the same time.
void expect_exchanges(Links& links, bool all_pairs) {
  const auto size = static_cast<int>(links.size());
  std::vector<std::future<void>> running;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from == to || (!all_pairs && std::abs(from - to) != 1)) continue;
      running.push_back(std::async(std::launch::async, [&, from, to] {
        for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{5} << 20})
          links[static_cast<size_t>(from)]->send(to, pattern(bytes, from * 10 + to));
      }));
      running.push_back(std::async(std::launch::async, [&, from, to] {
        for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{5} << 20}) {
          std::vector<std::byte> received(bytes);
          links[static_cast<size_t>(to)]->receive(from, received);
          EXPECT_EQ(received, pattern(bytes, from * 10 + to));
        }
      }));
    }
  }
  for (auto& done : running) done.get();
}

TEST(TcpLinks, CarryBytesBothWays) {
  Links neighbours = make_test_links({.size = 3});
  expect_exchanges(neighbours, false);
  Links all = make_test_links({.size = 4, .all_pairs = true});
  expect_exchanges(all, true);
}

TEST(MemoryLinks, CarryBytesBothWays) {
  Links links = make_memory_links(3);
  expect_exchanges(links, true);
}

TEST(MemoryLinks, StopAndDeadlineEndAReceive) {
  Links links = make_memory_links(2, milliseconds(100));
  std::vector<std::byte> bytes(4);
  EXPECT_THAT(error_of<LinkError>([&] { links[0]->receive(1, bytes); }),
              HasSubstr("rank 1 sends nothing"));
  links[1]->send(0, std::vector<std::byte>(3));
  EXPECT_THAT(error_of<LinkError>([&] { links[0]->receive(1, bytes); }),
              HasSubstr("3 bytes instead of 4"));
  links[1]->stop();
  EXPECT_THROW(links[0]->send(1, bytes), LinkError);
  EXPECT_THROW(links[0]->receive(1, bytes), LinkError);
}

TEST(TcpLinks, AReceiveOfAnotherLengthIsRefused) {
  Links links = make_test_links({});
  links[0]->send(1, pattern(8, 0));
  std::vector<std::byte> bytes(9);
  EXPECT_THAT(error_of<LinkError>([&] { links[1]->receive(0, bytes); }),
              HasSubstr("the link to rank 0: it sent 8 bytes as message 0 instead of 9 as 0"));
}

TEST(TcpLinks, DeadlinesEndBothDirections) {
  Links links = make_test_links({.deadline = milliseconds(200)});
  std::vector<std::byte> bytes(4);
  EXPECT_THAT(error_of<LinkError>([&] { links[1]->receive(0, bytes); }),
              HasSubstr("does not answer in time"));
  EXPECT_THAT(error_of<LinkError>([&] { links[0]->send(1, pattern(64u << 20, 0)); }),
              HasSubstr("does not answer in time"));
}

TEST(TcpLinks, StopEndsBlockedCalls) {
  Links links = make_test_links({});
  auto receiving = std::async(std::launch::async, [&] {
    std::vector<std::byte> bytes(4);
    return error_of<LinkError>([&] { links[1]->receive(0, bytes); });
  });
  auto sending = std::async(std::launch::async, [&] {
    return error_of<LinkError>([&] { links[1]->send(0, pattern(64u << 20, 0)); });
  });
  EXPECT_EQ(receiving.wait_for(milliseconds(100)), std::future_status::timeout);
  EXPECT_EQ(sending.wait_for(milliseconds(100)), std::future_status::timeout);
  links[1]->stop();
  EXPECT_THAT(receiving.get(), HasSubstr("stopped"));
  EXPECT_THAT(sending.get(), HasSubstr("stopped"));
  EXPECT_THROW(links[1]->send(0, pattern(1, 0)), LinkError);
}

TEST(TcpLinks, APeerThatIsGoneEndsAReceive) {
  Links links = make_test_links({});
  links[0].reset();
  std::vector<std::byte> bytes(4);
  EXPECT_THAT(error_of<LinkError>([&] { links[1]->receive(0, bytes); }),
              HasSubstr("closed the connection"));
}

TEST(TcpLinks, ConnectionsOfStrangersAndOtherClustersAreRefused) {
  TcpListener listener("127.0.0.1", 0);
  const std::string address = listener.address();
  const auto connect = [&](const ClusterSecret& secret, const char* session) {
    return make_tcp_links({.rank = 0,
                           .size = 2,
                           .addresses = {"", address},
                           .secret = secret,
                           .session = session,
                           .connect_deadline = milliseconds(10'000)});
  };
  auto accepting = std::async(std::launch::async, [&] {
    return make_tcp_links({.rank = 1,
                           .size = 2,
                           .addresses = {"", address},
                           .listener = &listener,
                           .secret = test_secret(),
                           .session = "session",
                           .connect_deadline = milliseconds(10'000)});
  });
  EXPECT_THAT(error_of<LinkError>([&] { connect(ClusterSecret("another secret"), "session"); }),
              HasSubstr("the secret is not the one of this cluster"));
  EXPECT_THAT(error_of<LinkError>([&] { connect(test_secret(), "other"); }),
              HasSubstr("belongs to another cluster"));
  const auto links = connect(test_secret(), "session");
  const auto peer = accepting.get();
  links->send(1, pattern(8, 1));
  std::vector<std::byte> bytes(8);
  peer->receive(0, bytes);
  EXPECT_EQ(bytes, pattern(8, 1));
}

TEST(TcpLinks, AMissingPeerIsNamed) {
  TcpListener listener("127.0.0.1", 0);
  EXPECT_THAT(error_of<LinkError>([&] {
                make_tcp_links({.rank = 1,
                                .size = 2,
                                .addresses = {"", listener.address()},
                                .listener = &listener,
                                .secret = test_secret(),
                                .connect_deadline = milliseconds(200)});
              }),
              HasSubstr("rank 0 does not connect to rank 1"));
}

}  // namespace
}  // namespace octavo

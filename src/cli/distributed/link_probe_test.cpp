#include "cli/distributed/link_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/error.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr ProbeSizes kQuickProbe{.round_trips = 5,
                                 .first_bytes = 100'000,
                                 .duration = std::chrono::milliseconds(5),
                                 .timeout = std::chrono::milliseconds(2000)};

// A server on a thread of its own, stopped by the destructor.
class RunningProbe {
 public:
  explicit RunningProbe(std::string secret) : server_("127.0.0.1", 0, std::move(secret)) {
    EXPECT_EQ(::pipe(pipe_.data()), 0);
    thread_ = std::thread([this] { server_.run(pipe_[0], kQuickProbe); });
  }
  ~RunningProbe() {
    ::close(pipe_[1]);
    thread_.join();
    ::close(pipe_[0]);
  }
  uint16_t port() const { return server_.port(); }

 private:
  ProbeServer server_;
  std::array<int, 2> pipe_{};
  std::thread thread_;
};

std::string probe_problem(uint16_t port, const std::string& secret) {
  try {
    measure_link("127.0.0.1", port, secret, kQuickProbe);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

TEST(LinkProbe, MeasuresBothDirections) {
  const RunningProbe probe("the secret");
  for (int i = 0; i < 2; ++i) {  // one connection after the other
    const LinkSpeed speed = measure_link("127.0.0.1", probe.port(), "the secret", kQuickProbe);
    EXPECT_GT(speed.round_trip_seconds, 0);
    EXPECT_LT(speed.round_trip_seconds, 1);
    EXPECT_GT(speed.send_bytes_per_second, 1e6);
    EXPECT_GT(speed.receive_bytes_per_second, 1e6);
  }
}

TEST(LinkProbe, AnotherSecretIsRefusedByBothSides) {
  const RunningProbe probe("the secret");
  EXPECT_THAT(probe_problem(probe.port(), "another"), HasSubstr("has another secret"));
  EXPECT_EQ(probe_problem(probe.port(), "the secret"), "none");
}

TEST(LinkProbe, AnotherServerIsNotMeasured) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  socklen_t size = sizeof(address);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  std::thread other([&] {
    const int client = ::accept(listener, nullptr, nullptr);
    EXPECT_EQ(::send(client, "SSH-2.0-OpenSSH", 15, 0), 15);
    ::close(client);
  });
  EXPECT_THAT(probe_problem(ntohs(address.sin_port), "s"), HasSubstr("does not answer"));
  other.join();
  ::close(listener);
}

TEST(LinkProbe, AnAddressThatCannotBeReachedIsNamed) {
  uint16_t port = 0;
  {
    const ProbeServer closed("127.0.0.1", 0, "s");
    port = closed.port();
  }
  EXPECT_THAT(probe_problem(port, "s"),
              HasSubstr("127.0.0.1 port " + std::to_string(port) + ": Connection refused"));
  EXPECT_THROW(ProbeServer("192.0.2.1", 0, "s"), SetupError);
  EXPECT_THROW(ProbeServer("no address", 0, "s"), SetupError);
}

}  // namespace
}  // namespace octavo

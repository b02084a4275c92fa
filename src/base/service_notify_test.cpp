#include "base/service_notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace octavo {
namespace {

// A socket like the service manager's.
class ServiceNotify : public testing::Test {
 protected:
  ServiceNotify() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~ServiceNotify() override {
    ::close(socket_);
    ::unlink(path_.c_str());
    ::unsetenv("NOTIFY_SOCKET");
  }

  const std::string path_ = testing::TempDir() + "notify_" + std::to_string(::getpid());
  const int socket_ = ::socket(AF_UNIX, SOCK_DGRAM, 0);
};

TEST_F(ServiceNotify, TheManagerIsNotified) {
  ::setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  EXPECT_TRUE(notify_service("READY=1"));
  std::string got(64, '\0');
  got.resize(static_cast<size_t>(::recv(socket_, got.data(), got.size(), MSG_DONTWAIT)));
  EXPECT_EQ(got, "READY=1");
}

TEST_F(ServiceNotify, WithoutAManagerNothingHappens) {
  EXPECT_FALSE(notify_service("READY=1"));
  ::setenv("NOTIFY_SOCKET", "neither a path nor a name", 1);
  EXPECT_FALSE(notify_service("READY=1"));
  ::setenv("NOTIFY_SOCKET", (path_ + "_unused").c_str(), 1);
  EXPECT_FALSE(notify_service("READY=1"));
}

TEST_F(ServiceNotify, ANameThatIsTooLongIsNotSentTo) {
  ::setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_FALSE(notify_service("READY=1"));
}

}  // namespace
}  // namespace octavo

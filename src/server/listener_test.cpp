#include "server/listener.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "base/error.h"

namespace octavo::server {
namespace {

class UnixListener : public testing::Test {
 protected:
  UnixListener() {
    std::string pattern = testing::TempDir() + "octavo_uds_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/socket";
  }
  ~UnixListener() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }

  std::string refusal() const {
    try {
      const Listener listener(path_);
    } catch (const SetupError& error) {
      return error.what();
    }
    return "";
  }

  std::string folder_;
  std::string path_;
};

TEST_F(UnixListener, OnlyThisUserCanConnect) {
  {
    const Listener listener(path_);
    EXPECT_EQ(listener.url(), "unix:" + path_);
    EXPECT_EQ(listener.curl_target(), "--unix-socket " + path_ + " http://localhost");
    struct stat file = {};
    ASSERT_EQ(::stat(path_.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u);
  }
  EXPECT_NE(::access(path_.c_str(), F_OK), 0) << "the socket file was not removed";
}

TEST_F(UnixListener, ReplacesTheSocketOfADeadServer) {
  {
    // Without unlink(), as after SIGKILL.
    boost::asio::io_context io;
    const boost::asio::local::stream_protocol::endpoint endpoint(path_);
    const boost::asio::local::stream_protocol::acceptor dead(io, endpoint);
  }
  ASSERT_EQ(::access(path_.c_str(), F_OK), 0);
  EXPECT_EQ(refusal(), "");
}

TEST_F(UnixListener, RefusesTheAddressOfALiveServer) {
  Listener first(path_);
  first.acceptor().listen();
  EXPECT_NE(refusal().find("another server is listening there"), std::string::npos) << refusal();
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
}

TEST_F(UnixListener, RefusesOtherFilesAndLongPaths) {
  std::ofstream(path_) << "text";
  EXPECT_NE(refusal().find("is not a socket"), std::string::npos) << refusal();
  path_ = folder_ + "/" + std::string(200, 'x');
  EXPECT_NE(refusal().find("too long"), std::string::npos) << refusal();
  path_ = folder_ + "/missing/socket";
  EXPECT_NE(refusal().find("No such file"), std::string::npos) << refusal();
  path_ = folder_ + "/socket";
}

}  // namespace
}  // namespace octavo::server

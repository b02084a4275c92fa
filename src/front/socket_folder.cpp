#include "front/socket_folder.h"

#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace octavo::front {

SocketFolder::SocketFolder() {
  const char* given = std::getenv("TMPDIR");
  std::string root = given == nullptr || *given == '\0' ? "/tmp" : given;
  // Room for the folder's own name and the number of a socket.
  if (root.size() + 40 > sizeof(sockaddr_un::sun_path)) root = "/tmp";
  std::string pattern = root + "/octavo-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    throw SetupError(fmt::format("{}: a folder for sockets cannot be made: {}; set TMPDIR", root,
                                 std::strerror(errno)));
  path_ = pattern;
}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string SocketFolder::socket(uint64_t number) const {
  return (path_ / fmt::format("{}.sock", number)).string();
}

}  // namespace octavo::front

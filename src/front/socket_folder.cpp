#include "front/socket_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/log.h"

namespace octavo::front {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "octavo-front-";
constexpr const char* kLockName = "lock";

// Where sockets have paths that are short enough.
std::string socket_root() {
  const char* given = std::getenv("TMPDIR");
  const std::string root = given == nullptr || *given == '\0' ? "/tmp" : given;
  constexpr size_t kRestBytes = 48;  // the folder's own name and the number of a socket
  return root.size() + kRestBytes > sizeof(sockaddr_un::sun_path) ? "/tmp" : root;
}

// The descriptor of the folder's lock file, or nothing if another process has locked it or it
// cannot be opened.
std::optional<int> lock_folder(const fs::path& folder, int more_flags) {
  const fs::path path = folder / kLockName;
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | more_flags, 0600);
  if (file < 0) return std::nullopt;
  struct stat opened {};
  struct stat named {};
  // Another process may have locked and removed the file since it was opened.
  const bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &opened) == 0 &&
                      ::lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
                      opened.st_dev == named.st_dev;
  if (locked) return file;
  ::close(file);
  return std::nullopt;
}

// A folder that mkdtemp() made for this user: another user can neither enter nor replace it.
bool is_own_folder(const fs::path& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
         facts.st_uid == ::geteuid() && (facts.st_mode & 0777) == 0700;
}

void remove_left_folders(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (!path.filename().string().starts_with(kFolderPrefix) || !is_own_folder(path)) continue;
    const auto lock = lock_folder(path, 0);
    if (!lock) continue;
    spdlog::info("removing {}, which a server that was killed has left", path.string());
    std::error_code ignored;
    fs::remove_all(path, ignored);
    ::close(*lock);
  }
}

}  // namespace

SocketFolder::SocketFolder() {
  const std::string root = socket_root();
  remove_left_folders(root);
  constexpr int kTries = 10;  // another process may remove the folder before it is locked
  for (int i = 0; i < kTries; ++i) {
    std::string pattern = fmt::format("{}/{}XXXXXX", root, kFolderPrefix);
    if (::mkdtemp(pattern.data()) == nullptr) break;
    if (const auto lock = lock_folder(pattern, O_CREAT)) {
      path_ = pattern;
      lock_ = *lock;
      return;
    }
  }
  throw SetupError(fmt::format("{}: a folder for sockets cannot be made: {}; set TMPDIR", root,
                               std::strerror(errno)));
}

SocketFolder::~SocketFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

std::string SocketFolder::socket(uint64_t number) const {
  return (path_ / fmt::format("{}.sock", number)).string();
}

}  // namespace octavo::front

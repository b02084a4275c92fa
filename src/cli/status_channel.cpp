#include "cli/status_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace octavo {
namespace {

#ifdef MSG_NOSIGNAL
constexpr int kQuietStatus = MSG_NOSIGNAL;
#else
constexpr int kQuietStatus = 0;  // SO_NOSIGPIPE is set instead
#endif

// The front process never sends anything: its end of the socket closes when it ends. No client is
// left then, so a drain that takes long is cut short.
void end_with_the_front(int descriptor) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::recv(descriptor, &byte, 1, 0);
  } while (got > 0 || (got < 0 && errno == EINTR));
  ::kill(::getpid(), SIGTERM);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  std::_Exit(1);
}

}  // namespace

StatusChannel::StatusChannel(int descriptor) : descriptor_(descriptor) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    throw SetupError(fmt::format("--status-fd {}: {}", descriptor, std::strerror(errno)));
  // Helper processes must not keep it open.
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
  std::thread(end_with_the_front, descriptor).detach();
}

void StatusChannel::send(const front::ChildStatus& status) {
  const std::string line = front::status_line(status);
  const std::scoped_lock lock(mutex_);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = ::send(descriptor_, rest.data(), rest.size(), kQuietStatus);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // the front process has ended
    rest.remove_prefix(static_cast<size_t>(sent));
  }
}

void StatusChannel::send_progress(const char* stage, uint64_t done, uint64_t total) {
  {
    const std::scoped_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (done < total && now - last_progress_ < std::chrono::milliseconds(100)) return;
    last_progress_ = now;
  }
  send(front::ChildProgress{.stage = stage, .done = done, .total = total});
}

}  // namespace octavo

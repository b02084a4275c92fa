#include "base/bounded_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace octavo {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// POSIX guarantees 512; a pipe that poll() reports as writable takes a whole PIPE_BUF.
constexpr size_t kPipeBytes = PIPE_BUF;

#ifdef MSG_NOSIGNAL
constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
#else
constexpr int kSendFlags = MSG_DONTWAIT;
#endif

bool is_writable(int descriptor, milliseconds patience) {
  pollfd wait{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) > 0;
}

// O_NONBLOCK on the descriptor itself would apply to every process that shares it. Linux can open
// the same pipe again; -1 elsewhere, or if that is not allowed.
int open_again(int descriptor) {
#ifdef __linux__
  return ::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
#else
  static_cast<void>(descriptor);
  return -1;
#endif
}

}  // namespace

BoundedWriter::BoundedWriter(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return;
  if (S_ISSOCK(status.st_mode)) kind_ = Kind::kSocket;
  if (!S_ISFIFO(status.st_mode)) return;
  kind_ = Kind::kPipe;
  if (const int own = open_again(descriptor); own >= 0) {
    descriptor_ = own;
    kind_ = Kind::kNonBlocking;
  }
}

BoundedWriter::~BoundedWriter() {
  if (kind_ == Kind::kNonBlocking) ::close(descriptor_);
}

size_t BoundedWriter::write(std::string_view bytes, milliseconds patience) {
  const size_t whole = bytes.size();
  broken_ = false;
  const auto deadline = steady_clock::now() + patience;
  while (!bytes.empty()) {
    const ssize_t done = write_some(bytes);
    if (done >= 0) {
      bytes.remove_prefix(static_cast<size_t>(done));
      continue;
    }
    if (errno == EINTR) continue;
    broken_ = errno != EAGAIN;
    if (broken_) break;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0 || !is_writable(descriptor_, left)) break;
  }
  return whole - bytes.size();
}

ssize_t BoundedWriter::write_some(std::string_view bytes) const {
  switch (kind_) {
    case Kind::kSocket:
      return ::send(descriptor_, bytes.data(), bytes.size(), kSendFlags);
    case Kind::kPipe:
      if (!is_writable(descriptor_, milliseconds(0))) {
        errno = EAGAIN;
        return -1;
      }
      return ::write(descriptor_, bytes.data(), std::min(bytes.size(), kPipeBytes));
    case Kind::kBlocking:
    case Kind::kNonBlocking:
      break;
  }
  return ::write(descriptor_, bytes.data(), bytes.size());
}

}  // namespace octavo

#include "text/helper_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace octavo {
namespace {

using HelperClock = std::chrono::steady_clock;

// How often the limits are checked while a helper works.
constexpr int kHelperTickMilliseconds = 20;

#ifdef MSG_NOSIGNAL
constexpr int kQuietSend = MSG_NOSIGNAL;
#else
constexpr int kQuietSend = 0;  // SO_NOSIGPIPE is set instead
#endif

[[noreturn]] void cannot_start(const char* what, int error) {
  throw SetupError(
      fmt::format("a helper process cannot be started ({}: {})", what, std::strerror(error)));
}

// The environment of a helper: only what the loader and the sanitizers read.
std::vector<std::string> helper_environment() {
  std::vector<std::string> all;
  for (const char* name : {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS",
                           "UBSAN_OPTIONS", "LSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) all.push_back(fmt::format("{}={}", name, value));
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What the child has as descriptors, and its signals and process group.
class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    // A socket that already has the number would keep its close-on-exec flag in a dup2 onto itself.
    posix_spawn_file_actions_adddup2(&actions, socket, kHelperSocket);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    sigset_t none;
    sigemptyset(&none);
    sigset_t usual;  // signals that a server may handle or ignore
    sigemptyset(&usual);
    for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXFSZ}) sigaddset(&usual, signal);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);  // the terminal's signals do not reach it
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

// Both ends are closed on exec and above the standard descriptors and kHelperSocket.
std::array<int, 2> make_sockets() {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) cannot_start("socketpair", errno);
  for (int& end : pair) {
    const int high = fcntl(end, F_DUPFD_CLOEXEC, kHelperSocket + 1);
    const int error = errno;
    close(end);
    end = high;
    if (high < 0) {
      for (const int open : pair) {
        if (open >= 0) close(open);
      }
      cannot_start("socket", error);
    }
  }
#ifdef SO_NOSIGPIPE
  const int on = 1;
  setsockopt(pair[0], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  return pair;
}

std::optional<std::chrono::nanoseconds> processor_time_of([[maybe_unused]] pid_t pid) {
#ifdef __linux__
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
#else
  return std::nullopt;
#endif
}

}  // namespace

// One message and its reply.
class HelperProcess::Exchange {
 public:
  Exchange(pid_t pid, int socket, HelperLimits limits, const std::stop_token& stop)
      : pid_(pid), socket_(socket), limits_(limits), stop_(stop) {}

  HelperReply run(HelperMessage kind, std::string_view payload) {
    reply_.outcome = HelperReply::Outcome::kAnswered;
    if (!send(packed_head({.kind = kind, .bytes = payload.size()})) || !send(payload))
      return reply_;
    std::string head(kMessageHeadBytes, '\0');
    if (!receive(head)) return reply_;
    const auto read = read_head(head);
    if (!read) {
      reply_.outcome = HelperReply::Outcome::kDied;
      return reply_;
    }
    reply_.kind = read->kind;
    reply_.payload.resize(read->bytes);
    receive(reply_.payload);
    return std::move(reply_);
  }
  // Whether the helper closed its end, which it does by ending.
  bool closed() const { return closed_; }

 private:
  // Waits until the socket is ready. Returns false, with the outcome set, at a limit or a stop.
  bool wait_for(int16_t events) {
    while (true) {
      pollfd entry{.fd = socket_, .events = events, .revents = 0};
      const int ready = poll(&entry, 1, kHelperTickMilliseconds);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return give_up(HelperReply::Outcome::kDied);
      if (stop_.stop_requested()) return give_up(HelperReply::Outcome::kStopped);
      if (exceeds_limits()) return give_up(HelperReply::Outcome::kTooLong);
    }
  }

  bool exceeds_limits() const {
    const auto elapsed = HelperClock::now() - started_;
    if (elapsed > limits_.elapsed) return true;
    const auto used = processor_time_of(pid_);
    if (!used || !used_before_) return elapsed > limits_.processor_time;
    return *used - *used_before_ > limits_.processor_time;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!wait_for(POLLOUT)) return false;
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), kQuietSend);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (sent <= 0) return give_up_closed();
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  bool receive(std::string& into) {
    size_t at = 0;
    while (at < into.size()) {
      if (!wait_for(POLLIN)) return false;
      const ssize_t got = ::recv(socket_, into.data() + at, into.size() - at, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return give_up_closed();
      at += static_cast<size_t>(got);
    }
    return true;
  }

  bool give_up(HelperReply::Outcome outcome) {
    reply_.outcome = outcome;
    return false;
  }

  bool give_up_closed() {
    closed_ = true;
    return give_up(HelperReply::Outcome::kDied);
  }

  pid_t pid_;
  int socket_;
  HelperLimits limits_;
  const std::stop_token& stop_;
  HelperClock::time_point started_ = HelperClock::now();
  std::optional<std::chrono::nanoseconds> used_before_ = processor_time_of(pid_);
  HelperReply reply_ = {};
  bool closed_ = false;
};

HelperProcess::HelperProcess(const std::vector<std::string>& command) {
  OCTAVO_CHECK(!command.empty());
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = helper_environment();
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  // Nothing throws while the sockets have no owner.
  const auto [own, theirs] = make_sockets();
  const SpawnSettings settings(theirs);
  const int error = posix_spawn(&pid_, command[0].c_str(), &settings.actions, &settings.attributes,
                                argument_pointers.data(), environment_pointers.data());
  close(theirs);
  socket_ = own;
  if (error != 0) {
    close(own);
    pid_ = -1;
    cannot_start(command[0].c_str(), error);
  }
}

HelperProcess::~HelperProcess() { end(); }

HelperProcess::HelperProcess(HelperProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::exchange(other.socket_, -1)) {}

HelperProcess& HelperProcess::operator=(HelperProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(socket_, other.socket_);
  return *this;
}

HelperReply HelperProcess::ask(HelperMessage kind, std::string_view payload, HelperLimits limits,
                               const std::stop_token& stop) {
  if (pid_ < 0) return {};
  Exchange exchange(pid_, socket_, limits, stop);
  HelperReply reply;
  try {
    reply = exchange.run(kind, payload);
  } catch (...) {
    end();  // the rest of the reply would be taken for the next one
    throw;
  }
  if (reply.outcome == HelperReply::Outcome::kAnswered) return reply;
  const int status = end();
  // A process that closed its end had its status before end() sent a signal.
  if (exchange.closed() && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    reply.outcome = HelperReply::Outcome::kKilled;
  return reply;
}

bool HelperProcess::alive() {
  if (pid_ < 0) return false;
  // A helper never writes without being asked, so readable means that its end is closed.
  pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, 0) != 0) end();
  return pid_ >= 0;
}

int HelperProcess::end() {
  if (pid_ < 0) return 0;
  int status = 0;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  close(socket_);
  pid_ = -1;
  socket_ = -1;
  return status;
}

}  // namespace octavo

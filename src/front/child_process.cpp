#include "front/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"

extern char** environ;  // of POSIX; macOS has no header that declares it

namespace octavo::front {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kLongestLine = 64u << 10;
constexpr size_t kLastBytes = 4096;  // of the log that is kept
constexpr std::chrono::milliseconds kReapTick{10};
// A child that has closed its status socket is ending.
constexpr std::chrono::seconds kTimeToEnd{5};

[[noreturn]] void fail_to_start(const std::string& what, int error) {
  throw SetupError(
      fmt::format("the process of a model cannot be started ({}: {})", what, std::strerror(error)));
}

// A descriptor that is closed on exec and above those that the child gets.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : value_(::fcntl(descriptor, F_DUPFD_CLOEXEC, 16)) {
    const int error = errno;
    ::close(descriptor);
    if (value_ < 0) fail_to_start("descriptor", error);
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

struct DescriptorPair {
  Descriptor own;
  Descriptor theirs;
};

DescriptorPair status_sockets() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) fail_to_start("socketpair", errno);
  return {.own = Descriptor(pair[0]), .theirs = Descriptor(pair[1])};
}

DescriptorPair log_pipe() {
  std::array<int, 2> pair{};
  if (::pipe(pair.data()) != 0) fail_to_start("pipe", errno);
  return {.own = Descriptor(pair[0]), .theirs = Descriptor(pair[1])};
}

// The front has checked the API keys, and only the front reports to the service manager.
std::vector<char*> child_environment() {
  std::vector<char*> kept;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (!variable.starts_with("OCTAVO_API_KEY=") && !variable.starts_with("NOTIFY_SOCKET="))
      kept.push_back(*at);
  }
  kept.push_back(nullptr);
  return kept;
}

class ChildSettings {
 public:
  ChildSettings(int status, int log) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, status, kStatusDescriptor);
    posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    // A child that kept a client's connection open would hide that the front has closed it.
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
    posix_spawn_file_actions_addclosefrom_np(&actions, kStatusDescriptor + 1);
#endif
    sigset_t none;
    sigemptyset(&none);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXFSZ}) sigaddset(&usual, signal);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);  // Ctrl-C reaches the front alone
    posix_spawnattr_setflags(&attributes, static_cast<int16_t>(flags));
  }
  ~ChildSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  ChildSettings(const ChildSettings&) = delete;
  ChildSettings& operator=(const ChildSettings&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

// Calls `on_line` with each line, without its end. A longer line is passed on in pieces. Returns at
// the end of the stream.
template <typename Stream, typename OnLine>
asio::awaitable<void> read_lines(Stream& stream, OnLine on_line) {
  std::string text;
  while (true) {
    error_code error;
    const size_t end =
        co_await asio::async_read_until(stream, asio::dynamic_buffer(text, kLongestLine), '\n',
                                        asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::not_found) {
      on_line(std::string_view(text));
      text.clear();
      continue;
    }
    if (error) break;
    on_line(std::string_view(text).substr(0, end - 1));
    text.erase(0, end);
  }
  if (!text.empty()) on_line(std::string_view(text));
}

// Removes "2026-01-31 12:00:00.000 warn " and returns the level.
spdlog::level::level_enum take_level(std::string_view& line) {
  constexpr size_t kTimeBytes = 24;
  if (line.size() <= kTimeBytes || line[4] != '-' || line[kTimeBytes - 1] != ' ')
    return spdlog::level::info;
  const std::string_view rest = line.substr(kTimeBytes);
  const std::string word(rest.substr(0, rest.find(' ')));
  const auto level = spdlog::level::from_str(word);
  if (level == spdlog::level::off) return spdlog::level::info;
  line = rest.substr(std::min(word.size() + 1, rest.size()));
  return level;
}

}  // namespace

int ChildEnd::exit_code() const {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string ChildEnd::describe() const {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("was ended by signal {}{}", signal,
                       signal == SIGKILL ? ", as the system does when it is out of memory" : "");
  }
  return fmt::format("exited with status {}", WEXITSTATUS(wait_status));
}

std::shared_ptr<ChildProcess> ChildProcess::start(asio::io_context& io, ChildCommand command,
                                                  Handlers handlers) {
  std::shared_ptr<ChildProcess> child(
      new ChildProcess(io, std::move(command), std::move(handlers)));
  child->run();
  return child;
}

ChildProcess::ChildProcess(asio::io_context& io, ChildCommand command, Handlers handlers)
    : io_(io),
      command_(std::move(command)),
      handlers_(std::move(handlers)),
      status_(io),
      log_(io) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || is_reaped_) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::run() {
  DescriptorPair status = status_sockets();
  DescriptorPair log = log_pipe();
  spawn(status.theirs.get(), log.theirs.get());
  status_.assign(asio::local::stream_protocol(), status.own.release());
  log_.assign(log.own.release());
  asio::co_spawn(io_, read_status(shared_from_this()), asio::detached);
  asio::co_spawn(io_, read_log(shared_from_this()), asio::detached);
}

void ChildProcess::spawn(int status, int log) {
  std::vector<std::string> arguments = {"octavo"};
  arguments.insert(arguments.end(), command_.arguments.begin(), command_.arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const std::vector<char*> environment = child_environment();
  const ChildSettings settings(status, log);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, command_.program.c_str(), &settings.actions,
                                  &settings.attributes, pointers.data(), environment.data());
  if (error != 0) fail_to_start(command_.program, error);
  pid_ = pid;
}

asio::awaitable<void> ChildProcess::read_status(std::shared_ptr<ChildProcess>) {
  co_await read_lines(status_, [&](std::string_view line) {
    const auto status = parse_status(line);
    // A copy: the handler may call forget().
    const auto on_status = handlers_.on_status;
    if (status && on_status) on_status(*status);
  });
  wait_until_ended(std::chrono::steady_clock::now() + kTimeToEnd);
}

asio::awaitable<void> ChildProcess::read_log(std::shared_ptr<ChildProcess>) {
  co_await read_lines(log_, [&](std::string_view line) { log_line(line); });
  log_ended_ = true;
}

void ChildProcess::log_line(std::string_view line) {
  if (line.empty()) return;
  end_.last_lines.append(line.substr(0, kLastBytes)).append("\n");
  if (end_.last_lines.size() > kLastBytes)
    end_.last_lines.erase(0, end_.last_lines.size() - kLastBytes);
  const auto level = take_level(line);
  spdlog::log(level, "[{}] {}", command_.name, line);
}

void ChildProcess::stop(std::chrono::milliseconds limit) {
  if (is_reaped_) return;
  ::kill(pid_, SIGTERM);
  wait_until_ended(std::chrono::steady_clock::now() + limit);
}

void ChildProcess::wait_until_ended(Time kill_at) {
  const bool waiting = kill_at_.has_value();
  kill_at_ = waiting ? std::min(*kill_at_, kill_at) : kill_at;
  if (!waiting && !is_reaped_)
    asio::co_spawn(io_, wait_for_end(shared_from_this()), asio::detached);
}

bool ChildProcess::reap() {
  const pid_t ended = ::waitpid(pid_, &end_.wait_status, WNOHANG);
  is_reaped_ = ended == pid_ || (ended < 0 && errno == ECHILD);
  return is_reaped_;
}

asio::awaitable<void> ChildProcess::wait_for_end(std::shared_ptr<ChildProcess>) {
  asio::steady_timer timer(io_);
  const auto tick = [&]() -> asio::awaitable<void> {
    error_code ignored;
    timer.expires_after(kReapTick);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  };
  bool killed = false;
  while (!reap()) {
    if (!killed && std::chrono::steady_clock::now() >= *kill_at_) {
      ::kill(pid_, SIGKILL);
      killed = true;
    }
    co_await tick();
  }
  // The last lines say why it ended. A process that it started may still hold the pipe.
  for (int i = 0; i < 20 && !log_ended_; ++i) co_await tick();
  const Handlers handlers = std::exchange(handlers_, {});
  error_code ignored;
  status_.close(ignored);
  log_.close(ignored);
  if (handlers.on_end) handlers.on_end(end_);
}

}  // namespace octavo::front

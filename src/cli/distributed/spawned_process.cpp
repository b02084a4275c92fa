#include "cli/distributed/spawned_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"

extern char** environ;  // of POSIX; macOS has no header that declares it

namespace octavo {
namespace {

[[noreturn]] void fail_to_spawn(const std::string& what, int error) {
  throw SetupError(fmt::format("cannot start {}: {}", what, std::strerror(error)));
}

struct SpawnPipe {
  int read = -1;
  int write = -1;
};

// Both ends are above the descriptors of the child.
SpawnPipe open_spawn_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) fail_to_spawn("a pipe", errno);
  for (int& end : ends) {
    const int high = ::fcntl(end, F_DUPFD_CLOEXEC, 16);
    const int error = errno;
    ::close(end);
    if (high < 0) fail_to_spawn("a pipe", error);
    end = high;
  }
  return {.read = ends[0], .write = ends[1]};
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    bool replaced = false;
    for (const auto& [name, value] : added) replaced = replaced || variable.starts_with(name + "=");
    if (!replaced) all.emplace_back(variable);
  }
  for (const auto& [name, value] : added) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class SpawnSettings {
 public:
  SpawnSettings(int input, int output) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (output >= 0) {
      posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
      posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    }
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
    if (output < 0) {
      posix_spawn_file_actions_addinherit_np(&actions, STDOUT_FILENO);
      posix_spawn_file_actions_addinherit_np(&actions, STDERR_FILENO);
    }
#else
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
    sigset_t none;
    sigemptyset(&none);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGTERM}) sigaddset(&usual, signal);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, static_cast<int16_t>(flags));
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

void close_spawned(int& descriptor) {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

}  // namespace

SpawnedProcess::SpawnedProcess(const SpawnOptions& options) {
  SpawnPipe input = open_spawn_pipe();
  SpawnPipe output;
  if (options.pipe_output) output = open_spawn_pipe();
  std::vector<std::string> words = options.words;
  std::vector<std::string> variables = environment_with(options.environment);
  const SpawnSettings settings(input.read, output.write);
  const int error =
      ::posix_spawnp(&pid_, words.front().c_str(), &settings.actions, &settings.attributes,
                     pointers_to(words).data(), pointers_to(variables).data());
  close_spawned(input.read);
  close_spawned(output.write);
  if (error != 0) {
    close_spawned(input.write);
    close_spawned(output.read);
    pid_ = -1;
    fail_to_spawn(options.words.front(), error);
  }
  input_ = input.write;
  output_ = output.read;
}

SpawnedProcess::~SpawnedProcess() {
  close_input();
  close_output();
  if (pid_ < 0 || exit_code_) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

SpawnedProcess::SpawnedProcess(SpawnedProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      exit_code_(other.exit_code_) {}

void SpawnedProcess::write_input(const std::string& text) const {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(input_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // it has ended, which exit_code() reports
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void SpawnedProcess::close_input() { close_spawned(input_); }

void SpawnedProcess::close_output() { close_spawned(output_); }

void SpawnedProcess::send_signal(int signal) const {
  if (pid_ > 0 && !exit_code_) ::kill(pid_, signal);
}

std::optional<int> SpawnedProcess::exit_code() {
  if (exit_code_ || pid_ < 0) return exit_code_;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == pid_) {
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  } else if (ended < 0 && errno == ECHILD) {
    exit_code_ = 1;
  }
  return exit_code_;
}

}  // namespace octavo

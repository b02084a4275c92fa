// spawned_process.h - a child process with a pipe to its stdin and, if wanted, one from its output.
// One thread. No MLX.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace octavo {

struct SpawnOptions {
  std::vector<std::string> words = {};  // words[0]: a path or a name in PATH
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides this process's
  bool pipe_output = false;  // stdout and stderr together; otherwise those of this process
};

class SpawnedProcess {
 public:
  // The child has a process group of its own, so that Ctrl-C reaches this process alone, and no
  // other descriptors. Throws SetupError.
  explicit SpawnedProcess(const SpawnOptions& options);
  // Kills it if it still runs, and closes the pipes.
  ~SpawnedProcess();
  SpawnedProcess(SpawnedProcess&& other) noexcept;
  SpawnedProcess& operator=(SpawnedProcess&&) = delete;

  pid_t pid() const { return pid_; }
  int output() const { return output_; }  // -1 without pipe_output
  // Writes to its stdin. Waits for it to read if the text is larger than a pipe.
  void write_input(const std::string& text) const;
  void close_input();
  void close_output();
  void send_signal(int signal) const;
  // The exit code once it has ended; 128 + the signal if one ended it.
  std::optional<int> exit_code();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::optional<int> exit_code_ = {};
};

}  // namespace octavo

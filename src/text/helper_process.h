// helper_process.h - a child process for work that may take too much time or memory. It has a
// socket to this process and no other descriptor, its own process group, and no environment.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/helper_message.h"

namespace octavo {

// The descriptor of the socket in the child.
inline constexpr int kHelperSocket = 3;

struct HelperLimits {
  // Processor time of one job. Without a clock for it (macOS), elapsed time is limited.
  std::chrono::milliseconds processor_time{600};
  std::chrono::milliseconds elapsed{10'000};
};

struct HelperReply {
  enum class Outcome {
    kAnswered,
    kTooLong,  // killed at a limit of time
    kDied,     // ended by itself: out of its limit of memory, or a bug
    kKilled,   // killed by another process or the system, as when the machine is out of memory
    kStopped   // killed because a stop was requested
  };
  Outcome outcome = Outcome::kDied;
  HelperMessage kind = HelperMessage::kResult;
  std::string payload = {};
};

// One thread at a time. After any reply but kAnswered the process has ended.
class HelperProcess {
 public:
  // Runs command[0], a path, with the other elements as arguments. The calling thread must exist as
  // long as the process: on Linux, a helper is killed when the thread that started it ends. Throws
  // SetupError.
  explicit HelperProcess(const std::vector<std::string>& command);
  ~HelperProcess();  // kills it
  HelperProcess(HelperProcess&& other) noexcept;
  HelperProcess& operator=(HelperProcess&& other) noexcept;

  // Sends a message and waits for the reply. A requested stop ends it within 100 ms. After an
  // exception (no memory for the reply) the process has ended too.
  HelperReply ask(HelperMessage kind, std::string_view payload, HelperLimits limits,
                  const std::stop_token& stop);
  // Whether it still runs. Only between calls of ask().
  bool alive();
  pid_t pid() const { return pid_; }

 private:
  class Exchange;

  // Kills it. Returns its status as waitpid() gives it, which is an earlier one if it had ended.
  int end();

  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace octavo

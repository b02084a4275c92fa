// child_process.h - a process that serves or plans a model: its status lines, its log and its end.
// I/O thread only. No MLX.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "front/child_status.h"

namespace octavo::front {

// The descriptor of the status socket in the child.
inline constexpr int kStatusDescriptor = 3;

struct ChildCommand {
  std::string program = {};                 // a path
  std::vector<std::string> arguments = {};  // without the program's name
  std::string name = {};                    // of the model, for the log
};

struct ChildEnd {
  int wait_status = 0;          // as waitpid() gives it
  std::string last_lines = {};  // of its log

  int exit_code() const;         // 128 + the signal if one ended it
  std::string describe() const;  // "exited with status 1", "was ended by signal 9"
};

class ChildProcess : public std::enable_shared_from_this<ChildProcess> {
 public:
  struct Handlers {
    std::function<void(const ChildStatus&)> on_status = nullptr;
    std::function<void(const ChildEnd&)> on_end = nullptr;  // once, as the last
  };

  // The child has its own process group, this process's environment without API keys, and no other
  // descriptors. It sees the end of its status socket when this process ends. Throws SetupError.
  static std::shared_ptr<ChildProcess> start(boost::asio::io_context& io, ChildCommand command,
                                             Handlers handlers);
  // Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Sends SIGTERM, and SIGKILL if it has not ended after `limit`.
  void stop(std::chrono::milliseconds limit);
  // Whether it was asked to end, or has closed its status socket.
  bool is_ending() const { return kill_at_.has_value(); }
  // Nothing is reported from now on.
  void forget() { handlers_ = {}; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  ChildProcess(boost::asio::io_context& io, ChildCommand command, Handlers handlers);
  void run();
  void spawn(int status, int log);
  // Each keeps the object until it has ended.
  boost::asio::awaitable<void> read_status(std::shared_ptr<ChildProcess> self);
  boost::asio::awaitable<void> read_log(std::shared_ptr<ChildProcess> self);
  boost::asio::awaitable<void> wait_for_end(std::shared_ptr<ChildProcess> self);
  void wait_until_ended(Time kill_at);
  bool reap();
  void log_line(std::string_view line);

  boost::asio::io_context& io_;
  ChildCommand command_;
  Handlers handlers_;
  boost::asio::local::stream_protocol::socket status_;
  boost::asio::posix::stream_descriptor log_;
  pid_t pid_ = -1;
  bool is_reaped_ = false;
  bool log_ended_ = false;
  std::optional<Time> kill_at_ = {};  // set: its end is being waited for
  ChildEnd end_ = {};
};

}  // namespace octavo::front

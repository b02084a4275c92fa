// worker_channel.h - a worker's side of the control channel. No MLX.
//
// A reader thread receives, and one thread sends heartbeats. The other functions are called by one
// thread, except where noted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cache/page_pool.h"
#include "distributed/cluster_error.h"
#include "distributed/cluster_secret.h"
#include "distributed/step_message.h"
#include "distributed/tensor_links.h"
#include "distributed/worker_hello.h"

namespace octavo {

struct WorkerChannelOptions {
  std::string host = {};  // of rank 0
  uint16_t port = 0;
  ClusterSecret secret;
  WorkerHello self = {};      // with the rank: 0: the next one that is free
  bool allow_public = false;  // addresses that are neither private nor loopback
  // Where this rank's tensor links listen; empty: the address from which it reaches rank 0.
  std::string link_host = {};
  uint16_t link_port = 0;                               // 0: any
  std::chrono::milliseconds connect_deadline{600'000};  // until rank 0 listens
  std::chrono::milliseconds join_deadline{600'000};     // then, until all others have joined
  std::chrono::milliseconds handshake_deadline{10'000};
  std::chrono::milliseconds heartbeat{1'000};
  std::chrono::milliseconds silence{5'000};
  std::chrono::milliseconds link_deadline{120'000};
  // Time since the compute thread last made progress; null: since the last call of next(),
  // send_result(), send_page() or acknowledge_drop() ended.
  std::function<std::chrono::milliseconds()> progress_age = nullptr;
  std::function<bool()> cancelled = nullptr;  // true: connect() gives up
};

class WorkerChannel {
 public:
  // Retries until rank 0 listens, and waits until all ranks have joined. Throws SetupError.
  static std::unique_ptr<WorkerChannel> connect(WorkerChannelOptions options);
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  int rank() const;
  int size() const;
  bool is_last() const { return rank() == size() - 1; }

  // The engine's plan for this rank, as JSON. Throws ClusterError, as all functions do, when rank 0
  // is gone or has ended the cluster.
  std::string wait_setup();
  // Of the model's steps. Before send_ready().
  void set_limits(const StepLimits& limits);
  // Links to the previous and the next rank or, with `all_pairs`, to all ranks. Blocks until those
  // have called make_links(), with the same argument. Stopped when rank 0 is gone. Must not outlive
  // the channel.
  std::unique_ptr<TensorLinks> make_links(bool all_pairs = false);
  void send_ready(const std::string& json);
  // This rank cannot start; rank 0's wait_ready() throws the text.
  void send_error(const std::string& text);

  struct Drop {};
  struct Shutdown {};
  struct CopyOut {
    PageId page;
    size_t bytes;
  };
  struct CopyIn {
    PageId page;
    std::vector<std::byte> bytes;
  };
  using Command = std::variant<StepMessage, Drop, CopyOut, CopyIn, Shutdown>;
  // Blocks. The next thing to do, in the order in which rank 0 sent it. Steps are returned even if
  // they were dropped in the meantime, because their rows may be on the way.
  Command next();
  // Whether next() would return at once. Any thread.
  bool has_next() const;
  // Whether a drop follows: steps before it need not be computed. Their masks are set. Any thread.
  bool drop_follows() const;

  // Once per step and in order, by every worker; see ResultMessage.
  void send_result(const ResultMessage& result);
  void acknowledge_drop();
  void send_page(PageId page, std::span<const std::byte> bytes);

  // Set when rank 0 is gone. Any thread.
  std::optional<std::string> failure() const;
  // Called once, by any thread, or at once if it has failed already. The call must not end the
  // channel. Any thread.
  void on_failure(std::function<void(const std::string&)> call);

 private:
  class State;
  explicit WorkerChannel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo

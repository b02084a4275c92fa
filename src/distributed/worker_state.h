// worker_state.h - the parts of WorkerChannel: its connection, its threads, and what rank 0 has
// sent. No MLX.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "distributed/cluster_messages.h"
#include "distributed/control_connection.h"
#include "distributed/failure_state.h"
#include "distributed/stop_signal.h"
#include "distributed/tcp_listener.h"
#include "distributed/ticker.h"
#include "distributed/worker_channel.h"

namespace octavo {

class WorkerChannel::State {
 public:
  State(TcpConnection connection, TcpListener links, WorkerChannelOptions options, Welcome welcome);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Throws ClusterError.
  void send(FrameType type, std::span<const std::byte> payload,
            std::span<const std::byte> more = {});
  template <typename Done>
  void wait_until(std::unique_lock<std::mutex>& lock, const Done& done) {
    changed_.wait(lock, [&] { return failed_ || done(); });
    failure_.throw_if_failed();
  }
  void note_progress() { progress_ = SocketClock::now(); }

  WorkerChannelOptions options_;
  Welcome welcome_;
  std::string name_;  // "rank 0 (10.0.0.1)"
  TcpListener links_;
  std::shared_ptr<StopSignal> links_stop_ = std::make_shared<StopSignal>();
  FailureState failure_;
  std::atomic<bool> failed_ = false;  // set after failure_
  std::atomic<bool> ready_ = false;   // send_ready() was called

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  StepLimits limits_;
  std::optional<std::string> setup_;
  std::deque<Command> queue_;
  int drops_ = 0;                        // in the queue
  std::map<uint64_t, StepMasks> masks_;  // of steps without a result, by number

 private:
  void on_failed(const std::string& why);
  void release_masks();
  void read_all();
  void read_some();
  void handle(Frame frame);
  void handle_step(const Frame& frame);
  void set_mask(MaskMessage message);
  void enqueue(Command command);
  std::chrono::milliseconds progress_age() const;
  void beat();

  ControlConnection connection_;
  uint64_t next_step_ = 0;  // of the reader
  int drawn_ = 0;           // tokens that the step before it draws
  bool finished_ = false;   // of the reader: a shutdown has arrived
  std::atomic<bool> stopping_ = false;
  std::atomic<SocketClock::time_point> progress_;
  StopSignal wake_;
  std::unique_ptr<Ticker> heartbeat_;
  std::thread reader_;
};

}  // namespace octavo

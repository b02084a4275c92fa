// cluster_state.h - the parts of Cluster: its workers, its threads, and what they have answered. No
// MLX.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/control_connection.h"
#include "distributed/failure_state.h"
#include "distributed/lobby.h"
#include "distributed/mask_sender.h"
#include "distributed/stop_signal.h"
#include "distributed/ticker.h"

namespace octavo {

class Cluster::State {
 public:
  State(std::vector<JoinedWorker> workers, ClusterOptions options, std::string session);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // By rank - 1. All but the connection is guarded by mutex_.
  struct Peer {
    int rank = 0;
    std::string name = {};  // "rank 1 (10.0.0.2)"
    std::unique_ptr<ControlConnection> connection = nullptr;
    std::optional<std::string> ready = {};
    std::optional<std::string> error = {};
    int owed = 0;                              // answers to what was sent
    SocketClock::time_point owing_since = {};  // or since the last answer
    std::chrono::milliseconds age{0};          // of the worker's progress
    uint64_t results = 0;                      // since the last drop
    bool dropping = false;                     // has not acknowledged the last drop
    size_t copying = 0;                        // bytes in its queue of pages
    bool wants_page = false;
    std::optional<std::vector<std::byte>> page = {};  // id and bytes
    bool closed = false;
  };
  struct Step {
    ResultShape shape;
    int missing;          // results of workers
    int failed_rank = 0;  // the lowest one
    ResultMessage message = {};
  };

  Peer& peer(int rank) { return *peers_.at(static_cast<size_t>(rank - 1)); }
  bool is_last(const Peer& peer) const { return peer.rank == options_.size - 1; }

  // Throw ClusterError, as everything else, when the cluster has failed.
  void send(Peer& peer, FrameType type, std::span<const std::byte> payload,
            std::span<const std::byte> more = {});
  template <typename Done>
  void wait_until(std::unique_lock<std::mutex>& lock, const Done& done) {
    changed_.wait(lock, [&] { return failed_ || done(); });
    failure_.throw_if_failed();
  }
  // Requires the lock: the worker will send an answer.
  static void owe(Peer& peer);
  // Only the first call counts.
  void fail(const std::string& why);
  void shut_down();

  ClusterOptions options_;
  std::string session_;
  std::vector<WorkerHello> hellos_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::shared_ptr<StopSignal> links_stop_ = std::make_shared<StopSignal>();
  FailureState failure_;
  std::atomic<bool> failed_ = false;  // set after failure_
  std::atomic<int> vocab_;
  std::atomic<int> hidden_ = 0;  // StepLimits::hidden

  std::mutex mutex_;  // guards all below, and peers
  std::condition_variable changed_;
  std::map<uint64_t, Step> steps_;
  uint64_t next_step_ = 0;

  std::unique_ptr<MaskSender> masks_;

 private:
  void tell_all(const std::string& why);
  void read_all();
  void wait_for_bytes(std::vector<bool>& readable);
  void read_from(Peer& peer);
  void handle(Peer& peer, Frame frame);
  void take_result(Peer& peer, ResultMessage message);
  void take_taken(Peer& peer, uint64_t bytes);
  void answered(Peer& peer);
  void check_peers();
  std::optional<std::string> find_stall();
  void beat();

  std::atomic<bool> closing_ = false;   // workers may end
  std::atomic<bool> stopping_ = false;  // the reader ends
  StopSignal wake_;
  std::unique_ptr<Ticker> heartbeat_;
  std::thread reader_;
};

}  // namespace octavo

// cluster.h - rank 0's side of the control channel. No MLX.
//
// A reader thread receives from all workers, one thread sends heartbeats, and one sends masks when
// they are set. The functions that send, and drop(), are called by one thread: the engine's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/page_pool.h"
#include "distributed/cluster_error.h"
#include "distributed/cluster_secret.h"
#include "distributed/step_message.h"
#include "distributed/tcp_listener.h"
#include "distributed/tensor_links.h"
#include "distributed/worker_hello.h"

namespace octavo {

struct ClusterOptions {
  int size = 2;  // ranks, this one included
  ClusterSecret secret;
  WorkerHello self = {};  // workers with another version, arithmetic or model digest are refused
  bool allow_public = false;  // addresses that are neither private nor loopback
  std::chrono::milliseconds join_deadline{600'000};  // until all workers have joined
  std::chrono::milliseconds handshake_deadline{10'000};
  std::chrono::milliseconds heartbeat{1'000};
  std::chrono::milliseconds silence{5'000};  // a rank that sends nothing for so long is gone
  std::chrono::milliseconds stall{60'000};   // a rank that computes nothing for so long hangs
  std::chrono::milliseconds link_deadline{120'000};
  // Time since the engine last made progress; null: not reported.
  std::function<std::chrono::milliseconds()> progress_age = nullptr;
  std::function<bool()> cancelled = nullptr;  // true: accept() gives up
};

class Cluster {
 public:
  // Waits until all workers have connected and proven the secret, then closes the listener. Throws
  // SetupError if they do not, or if one of them does not fit.
  static std::unique_ptr<Cluster> accept(TcpListener listener, ClusterOptions options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int size() const;
  const std::vector<WorkerHello>& workers() const;  // by rank - 1
  // Of the model's steps. Before announce().
  void set_limits(const StepLimits& limits);
  // Links of this rank to rank 1 or, with `all_pairs`, to all ranks. Blocks until those have called
  // their make_links(), with the same argument. Stopped when the cluster fails. Must not outlive
  // the cluster.
  std::unique_ptr<TensorLinks> make_links(bool all_pairs = false);

  // The engine's plan for that rank.
  void send_setup(int rank, const std::string& json);
  // Each worker's message, by rank - 1. Throws SetupError with the error of the first rank that
  // sends one.
  std::vector<std::string> wait_ready();

  // To all workers. The last one gets the part `of_last`, the others kLayers. kDraws: masks follow
  // when they are set. kLayers: this rank draws, and the last one's result is empty like the
  // others'.
  void announce(const StepMessage& step, StepPart of_last = StepPart::kDraws);
  // Waits until all workers have sent their results of the step, and returns the last rank's.
  // `error` is set if the step failed on any rank, and names the rank.
  ResultMessage wait_result(uint64_t number);
  // Announces a drop and waits until all workers have acknowledged it. Results of earlier steps are
  // ignored; the next step has the number 0.
  void drop();
  // Reads and writes the worker's bytes of a page, after the steps that were announced before.
  // copy_in() may return before the bytes are written.
  void copy_out(int rank, PageId page, std::span<std::byte> to);
  void copy_in(int rank, PageId page, std::span<const std::byte> from);

  // Set when a rank is gone or hangs: from then on all functions throw ClusterError. Any thread.
  std::optional<std::string> failure() const;
  // Called once, by any thread, or at once if it has failed already. The call must not end the
  // cluster. Any thread.
  void on_failure(std::function<void(const std::string&)> call);
  // Tells the workers to exit. No function may be called afterwards. The destructor calls it.
  void shutdown();

 private:
  class State;
  explicit Cluster(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo

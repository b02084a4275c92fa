// lobby.h - rank 0 waits here for its workers. Handshakes run on threads of their own, so that a
// slow stranger delays nothing. No MLX.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/stop_signal.h"
#include "distributed/tcp_listener.h"
#include "distributed/worker_hello.h"

namespace octavo {

struct JoinedWorker {
  WorkerHello hello;
  std::string host;
  TcpConnection connection;
};

class Lobby {
 public:
  // Both must outlive the lobby.
  Lobby(TcpListener& listener, const ClusterOptions& options);
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  // By rank - 1. Throws SetupError, after telling the workers why.
  std::vector<JoinedWorker> wait();

 private:
  struct Handshake {
    std::thread thread;
    std::atomic<bool> done = false;
  };
  void wait_for_all();
  size_t joined() const;
  void wait_for_event();
  void shake_hands(TcpConnection connection);
  void reap(bool all);
  void seat_arrived();
  void seat(JoinedWorker worker);
  void check_fit(const JoinedWorker& worker) const;
  void rank_unranked();
  void drop_gone();
  void note_refusal(const std::string& host, const std::string& why);
  std::string missing() const;

  TcpListener& listener_;
  const ClusterOptions& options_;
  SocketClock::time_point end_;
  std::vector<std::optional<JoinedWorker>> seats_;  // by rank - 1
  std::vector<JoinedWorker> unranked_;              // get the ranks that are left at the end
  std::list<Handshake> handshakes_;
  std::shared_ptr<StopSignal> stop_ = std::make_shared<StopSignal>();
  std::atomic<int> refused_ = 0;
  std::mutex mutex_;  // guards the next one
  std::vector<JoinedWorker> arrived_;
};

}  // namespace octavo

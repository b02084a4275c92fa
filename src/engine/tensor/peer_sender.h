// peer_sender.h - sends to one rank on a thread of its own, so that ranks can send to each other at
// the same time. No MLX.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "distributed/tensor_links.h"

namespace octavo {

class PeerSender {
 public:
  // `links` must outlive it.
  PeerSender(TensorLinks& links, int peer);
  // Waits for a send in progress.
  ~PeerSender();
  PeerSender(const PeerSender&) = delete;
  PeerSender& operator=(const PeerSender&) = delete;

  // Begins to send. The bytes must stay until wait() has returned. One thread calls both.
  void start(std::span<const std::byte> bytes);
  // Until the bytes are passed on. Throws LinkError.
  void wait();

 private:
  void run();

  TensorLinks& links_;
  int peer_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::optional<std::span<const std::byte>> bytes_;
  std::optional<std::string> failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo

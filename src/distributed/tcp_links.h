// tcp_links.h - links over TCP, one connection per pair of ranks, with the same proof as the
// control channel. No MLX.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "distributed/cluster_secret.h"
#include "distributed/stop_signal.h"
#include "distributed/tcp_listener.h"
#include "distributed/tensor_links.h"

namespace octavo {

struct TcpLinksOptions {
  int rank = 0;
  int size = 2;
  std::vector<std::string> addresses = {};  // by rank, "10.0.0.2:41234"; rank 0's is not used
  TcpListener* listener = nullptr;          // of ranks above 0, at their address
  ClusterSecret secret;
  std::string session = {};  // the same on all ranks: connections of another cluster are refused
  bool all_pairs = false;    // false: neighbours only
  bool allow_public = false;
  std::chrono::milliseconds connect_deadline{60'000};
  std::chrono::milliseconds deadline{120'000};  // in which a peer moves the next MiB
  // Does what TensorLinks::stop() does, which stops it. Null: the links have one of their own.
  std::shared_ptr<StopSignal> stop = nullptr;
};

// Each rank connects to higher ranks and is connected to by lower ones. Throws LinkError.
std::unique_ptr<TensorLinks> make_tcp_links(TcpLinksOptions options);

}  // namespace octavo

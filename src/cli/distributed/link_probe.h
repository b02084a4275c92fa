// link_probe.h - measures a TCP connection between two machines: round trip and bandwidth. Each side
// proves that it knows the secret before anything is measured. One thread. No MLX.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace octavo {

struct LinkSpeed {
  double round_trip_seconds = 0;  // median
  double send_bytes_per_second = 0;
  double receive_bytes_per_second = 0;
};

struct ProbeSizes {
  int round_trips = 100;
  uint64_t first_bytes = 4u << 20;  // sent to find out how much to send
  std::chrono::milliseconds duration{700};
  std::chrono::milliseconds timeout{10'000};  // of connecting, and of each read and write
};

// The side that is measured.
class ProbeServer {
 public:
  // Listens at a numeric address; port 0 chooses one. Throws SetupError.
  ProbeServer(const std::string& ip, uint16_t port, std::string secret);
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  uint16_t port() const { return port_; }
  // Serves one connection after the other until `stop_descriptor` is readable or closed.
  void run(int stop_descriptor, const ProbeSizes& sizes = {});

 private:
  int listener_ = -1;
  uint16_t port_ = 0;
  std::string secret_;
};

// Throws SetupError if the address cannot be reached, the other side does not know the secret, or
// the connection breaks.
LinkSpeed measure_link(const std::string& ip, uint16_t port, const std::string& secret,
                       const ProbeSizes& sizes = {});

}  // namespace octavo

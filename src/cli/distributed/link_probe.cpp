#include "cli/distributed/link_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/constant_time.h"
#include "base/error.h"
#include "base/hmac.h"

namespace octavo {
namespace {

using ProbeClock = std::chrono::steady_clock;

// The exchange after both proofs: the client sends a letter and a count, eight bytes, big-endian.
//   e COUNT   the server returns one byte
//   s COUNT   the client sends COUNT bytes, and the server then returns one byte
//   r COUNT   the server sends COUNT bytes
constexpr char kEcho = 'e';
constexpr char kSend = 's';
constexpr char kReceive = 'r';
constexpr size_t kCommandBytes = 9;
constexpr uint64_t kMostProbeBytes = uint64_t{1} << 32;
constexpr std::string_view kGreeting = "octavo-probe-1 ";
constexpr size_t kProbeNonce = 32;
constexpr size_t kProbeProof = 64;

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;  // SIGPIPE is ignored by the command
#endif

double seconds_since(ProbeClock::time_point start) {
  return std::chrono::duration<double>(ProbeClock::now() - start).count();
}

std::string probe_nonce() {
  std::random_device random;
  std::string digits;
  while (digits.size() < kProbeNonce) digits += fmt::format("{:08x}", random());
  return digits;
}

std::string probe_proof(const std::string& secret, std::string_view side, std::string_view nonce) {
  return fmt::format("{:02x}",
                     fmt::join(hmac_sha256(secret, fmt::format("probe {}\n{}", side, nonce)), ""));
}

// The address of a numeric host and a port.
class ProbeAddress {
 public:
  ProbeAddress(const std::string& ip, uint16_t port) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(ip.c_str(), std::to_string(port).c_str(), &wanted, &found);
    if (error != 0) throw SetupError(fmt::format("{}: {}", ip, ::gai_strerror(error)));
    list_.reset(found);
  }
  const addrinfo& get() const { return *list_; }

 private:
  struct Free {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
  };
  std::unique_ptr<addrinfo, Free> list_;
};

// A connected socket whose reads and writes have a time limit.
class ProbeSocket {
 public:
  ProbeSocket(int descriptor, std::chrono::milliseconds limit) : descriptor_(descriptor) {
    ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(limit);
    timeval time{};
    time.tv_sec = static_cast<decltype(time.tv_sec)>(whole.count());
    time.tv_usec = static_cast<decltype(time.tv_usec)>((limit - whole).count() * 1000);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
    const int on = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~ProbeSocket() { ::close(descriptor_); }
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;

  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), kNoSignal);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Empty if the connection ends, or is silent for too long.
  std::string read(size_t size) const {
    std::string bytes(size, '\0');
    size_t at = 0;
    while (at < size) {
      const ssize_t got = ::recv(descriptor_, bytes.data() + at, size - at, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return {};
      at += static_cast<size_t>(got);
    }
    return bytes;
  }

  bool write_zeros(uint64_t count) const {
    for (; count > 0; count -= std::min<uint64_t>(count, block_.size()))
      if (!write(std::string_view(block_).substr(0, std::min<uint64_t>(count, block_.size()))))
        return false;
    return true;
  }

  bool skip(uint64_t count) {
    while (count > 0) {
      const size_t wanted = static_cast<size_t>(std::min<uint64_t>(count, block_.size()));
      const ssize_t got = ::recv(descriptor_, block_.data(), wanted, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      count -= static_cast<uint64_t>(got);
    }
    return true;
  }

 private:
  int descriptor_;
  std::string block_ = std::string(256u << 10, '\0');
};

std::string probe_command(char letter, uint64_t count) {
  std::string bytes(1, letter);
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += static_cast<char>(static_cast<unsigned char>(count >> shift));
  return bytes;
}

uint64_t count_of(std::string_view command) {
  uint64_t count = 0;
  for (const char byte : command.substr(1)) count = count << 8 | static_cast<unsigned char>(byte);
  return count;
}

// Whether the client has proven the secret.
bool greet_client(const ProbeSocket& socket, const std::string& secret) {
  const std::string nonce = probe_nonce();
  if (!socket.write(std::string(kGreeting) + nonce)) return false;
  const std::string reply = socket.read(kProbeNonce + kProbeProof);
  if (reply.empty()) return false;
  const std::string_view proof = std::string_view(reply).substr(kProbeNonce);
  if (!equal_in_constant_time(proof, probe_proof(secret, "client", nonce))) return false;
  return socket.write(probe_proof(secret, "server", reply.substr(0, kProbeNonce)));
}

void serve_probe(ProbeSocket& socket, const std::string& secret) {
  if (!greet_client(socket, secret)) return;
  while (true) {
    const std::string command = socket.read(kCommandBytes);
    if (command.empty()) return;
    const uint64_t count = count_of(command);
    if (count > kMostProbeBytes) return;
    bool ok = false;
    if (command[0] == kEcho) ok = socket.write("e");
    if (command[0] == kSend) ok = socket.skip(count) && socket.write("s");
    if (command[0] == kReceive) ok = socket.write_zeros(count);
    if (!ok) return;
  }
}

// Returns a connected descriptor.
int connect_within(const std::string& ip, uint16_t port, std::chrono::milliseconds limit) {
  const ProbeAddress address(ip, port);
  const addrinfo& info = address.get();
  const auto fail = [&](int error) {
    throw SetupError(fmt::format("{} port {}: {}", ip, port, std::strerror(error)));
  };
  const int descriptor = ::socket(info.ai_family, info.ai_socktype, info.ai_protocol);
  if (descriptor < 0) fail(errno);
  const int flags = ::fcntl(descriptor, F_GETFL);
  ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
  int error = ::connect(descriptor, info.ai_addr, info.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{.fd = descriptor, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(limit.count()));
    socklen_t size = sizeof(error);
    if (ready == 1) ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (ready != 1) error = ETIMEDOUT;
  }
  if (error != 0) {
    ::close(descriptor);
    fail(error);
  }
  ::fcntl(descriptor, F_SETFL, flags);
  return descriptor;
}

// Measures over a connection whose sides know each other.
class LinkMeasurement {
 public:
  LinkMeasurement(ProbeSocket& socket, const ProbeSizes& sizes) : socket_(socket), sizes_(sizes) {}

  LinkSpeed run() {
    LinkSpeed speed;
    speed.round_trip_seconds = round_trip();
    speed.send_bytes_per_second = rate([&](uint64_t bytes) {
      return socket_.write(probe_command(kSend, bytes)) && socket_.write_zeros(bytes) &&
             !socket_.read(1).empty();
    });
    speed.receive_bytes_per_second = rate([&](uint64_t bytes) {
      return socket_.write(probe_command(kReceive, bytes)) && socket_.skip(bytes);
    });
    return speed;
  }

 private:
  static void require(bool ok) {
    if (!ok) throw SetupError("the connection ended while it was measured");
  }

  double round_trip() {
    std::vector<double> seconds;
    for (int i = 0; i < sizes_.round_trips; ++i) {
      const auto start = ProbeClock::now();
      require(socket_.write(probe_command(kEcho, 0)) && !socket_.read(1).empty());
      seconds.push_back(seconds_since(start));
    }
    std::ranges::nth_element(seconds, seconds.begin() + sizes_.round_trips / 2);
    return seconds[static_cast<size_t>(sizes_.round_trips / 2)];
  }

  template <typename Transfer>
  double rate(const Transfer& transfer) {
    const auto timed = [&](uint64_t bytes) {
      const auto start = ProbeClock::now();
      require(transfer(bytes));
      return seconds_since(start);
    };
    const double first = std::max(timed(sizes_.first_bytes), 1e-6);
    const double wanted = std::chrono::duration<double>(sizes_.duration).count();
    const double estimate = static_cast<double>(sizes_.first_bytes) * wanted / first;
    const auto bytes = static_cast<uint64_t>(
        std::clamp(estimate, static_cast<double>(sizes_.first_bytes), double{kMostProbeBytes}));
    return static_cast<double>(bytes) / timed(bytes);
  }

  ProbeSocket& socket_;
  const ProbeSizes& sizes_;
};

}  // namespace

ProbeServer::ProbeServer(const std::string& ip, uint16_t port, std::string secret)
    : secret_(std::move(secret)) {
  const ProbeAddress address(ip, port);
  const addrinfo& info = address.get();
  listener_ = ::socket(info.ai_family, info.ai_socktype, info.ai_protocol);
  const int on = 1;
  if (listener_ >= 0) {
    ::fcntl(listener_, F_SETFD, FD_CLOEXEC);
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (listener_ < 0 || ::bind(listener_, info.ai_addr, info.ai_addrlen) != 0 ||
      ::listen(listener_, 4) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    const int error = errno;
    if (listener_ >= 0) ::close(listener_);
    throw SetupError(
        fmt::format("cannot listen on {} port {}: {}", ip, port, std::strerror(error)));
  }
  port_ = bound.ss_family == AF_INET6
              ? ntohs(reinterpret_cast<const sockaddr_in6&>(bound).sin6_port)
              : ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

ProbeServer::~ProbeServer() { ::close(listener_); }

void ProbeServer::run(int stop_descriptor, const ProbeSizes& sizes) {
  while (true) {
    std::array<pollfd, 2> waiting = {pollfd{.fd = listener_, .events = POLLIN, .revents = 0},
                                     pollfd{.fd = stop_descriptor, .events = POLLIN, .revents = 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (waiting[1].revents != 0) return;
    const int descriptor = ::accept(listener_, nullptr, nullptr);
    if (descriptor < 0) continue;
    ProbeSocket socket(descriptor, sizes.timeout);
    serve_probe(socket, secret_);
  }
}

LinkSpeed measure_link(const std::string& ip, uint16_t port, const std::string& secret,
                       const ProbeSizes& sizes) {
  ProbeSocket socket(connect_within(ip, port, sizes.timeout), sizes.timeout);
  const std::string greeting = socket.read(kGreeting.size() + kProbeNonce);
  if (!greeting.starts_with(kGreeting))
    throw SetupError(fmt::format("{} port {}: octavo worker --probe does not answer", ip, port));
  const std::string nonce = probe_nonce();
  const std::string proof = probe_proof(secret, "client", greeting.substr(kGreeting.size()));
  const bool sent = socket.write(nonce + proof);
  const std::string reply = sent ? socket.read(kProbeProof) : "";
  if (!equal_in_constant_time(reply, probe_proof(secret, "server", nonce)))
    throw SetupError(fmt::format("{} port {}: the other side has another secret", ip, port));
  return LinkMeasurement(socket, sizes).run();
}

}  // namespace octavo

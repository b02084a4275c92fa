#include "server/listener.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Unix = asio::local::stream_protocol;

tcp::endpoint endpoint_of(asio::io_context& io, const std::string& host, uint16_t port) {
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) throw SetupError(fmt::format("--host {}: {}", host, error.message()));
  return found.begin()->endpoint();
}

std::string url_of(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address();
  const std::string host = address.is_unspecified() ? "localhost"
                           : address.is_v6()        ? "[" + address.to_string() + "]"
                                                    : address.to_string();
  return fmt::format("http://{}:{}", host, endpoint.port());
}

Unix::endpoint unix_endpoint(const std::string& path) {
  if (path.empty()) throw SetupError("--uds: the path is empty");
  try {
    return Unix::endpoint(path);
  } catch (const boost::system::system_error&) {
    throw SetupError(fmt::format(
        "--uds {}: the path is too long for a Unix socket (about 100 bytes); choose a shorter one",
        path));
  }
}

// Removes the socket file of a server that has ended.
void remove_stale(asio::io_context& io, const std::string& path, const Unix::endpoint& endpoint) {
  struct stat file = {};
  if (::lstat(path.c_str(), &file) != 0) return;
  if (!S_ISSOCK(file.st_mode))
    throw SetupError(fmt::format("--uds {}: the file exists and is not a socket", path));
  Unix::socket probe(io);
  error_code error;
  probe.connect(endpoint, error);
  if (error != asio::error::connection_refused) {
    const std::string why = error ? error.message() : "another server is listening there";
    throw SetupError(fmt::format("--uds {}: {}; choose another path", path, why));
  }
  ::unlink(path.c_str());
}

}  // namespace

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

Listener::Listener(const std::string& host, uint16_t port) {
  const tcp::endpoint endpoint = endpoint_of(io_, host, port);
  tcp::acceptor acceptor(io_);
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (error) {
    throw SetupError(fmt::format("cannot listen on {} port {}: {}; choose another with --port",
                                 host, port, error.message()));
  }
  port_ = acceptor.local_endpoint().port();
  url_ = url_of(acceptor.local_endpoint());
  acceptor_ = std::move(acceptor);
}

Listener::Listener(std::string uds) {
  const Unix::endpoint endpoint = unix_endpoint(uds);
  remove_stale(io_, uds, endpoint);
  Unix::acceptor acceptor(io_);
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.bind(endpoint, error);
  // No client can connect before listen().
  if (!error && ::chmod(uds.c_str(), 0600) != 0) {
    error = error_code(errno, boost::system::system_category());
    ::unlink(uds.c_str());
  }
  if (error) throw SetupError(fmt::format("--uds {}: {}", uds, error.message()));
  acceptor_ = std::move(acceptor);
  uds_ = std::move(uds);
  url_ = "unix:" + uds_;
}

Listener::~Listener() {
  if (!uds_.empty()) ::unlink(uds_.c_str());
}

std::string Listener::curl_target() const {
  return uds_.empty() ? url_ : fmt::format("--unix-socket {} http://localhost", uds_);
}

}  // namespace octavo::server

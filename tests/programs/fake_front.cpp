// A real front over children that a test starts and kills itself.
//
// usage: fake_front --child NAME=SOCKET[=SERVED_NAME] [--child ...] [--port 0] ...
//
// Prints "listening PORT" and serves until SIGTERM. Nothing is loaded or unloaded: a model is there
// while a server with --uds SOCKET --behind-front listens.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "front/front_server.h"
#include "support/key_options.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

bool listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(path.begin(), std::min(path.size(), sizeof(address.sun_path) - 1), address.sun_path);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const bool connected =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(probe);
  return connected;
}

// Every start of a server makes a new file.
uint64_t generation_of(const std::string& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0) return 0;
  return static_cast<uint64_t>(file.st_ino) * 1'000'003 + static_cast<uint64_t>(file.st_ctime);
}

class StartedByTheTest : public front::Upstreams {
 public:
  StartedByTheTest(boost::asio::io_context& io, const std::vector<std::string>& children)
      : io_(io) {
    for (const std::string& child : children) {
      const size_t first = child.find('=');
      const size_t second = std::min(child.find('=', first + 1), child.size());
      const std::string name = child.substr(0, first);
      sockets_[name] = child.substr(first + 1, second - first - 1);
      served_[name] = second < child.size() ? child.substr(second + 1) : name;
    }
  }

  front::Awaitable<front::UpstreamLease> acquire(const std::string& model,
                                                 const front::AcquireOptions&) override {
    const auto found = sockets_.find(model);
    if (found == sockets_.end())
      throw RequestError(404, "model", fmt::format("{} is unknown", model));
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    boost::asio::steady_timer timer(io_);
    while (!listens(found->second)) {
      if (Clock::now() > deadline) throw RequestError(503, "", "the model is not loaded");
      timer.expires_after(std::chrono::milliseconds(5));
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
    co_return front::UpstreamLease({.model = served_.at(model),
                                    .socket = found->second,
                                    .generation = generation_of(found->second)},
                                   nullptr);
  }
  std::vector<front::LoadedModel> loaded() const override {
    std::vector<front::LoadedModel> models;
    for (const auto& [name, socket] : sockets_)
      models.push_back({.name = name,
                        .socket = socket,
                        .generation = generation_of(socket),
                        .ready = listens(socket)});
    return models;
  }
  std::optional<std::string> default_model() const override {
    if (sockets_.size() != 1) return std::nullopt;
    return sockets_.begin()->first;
  }
  std::vector<std::string> known_names() const override {
    std::vector<std::string> names;
    for (const auto& [name, socket] : sockets_) names.push_back(name);
    return names;
  }

 private:
  boost::asio::io_context& io_;
  std::map<std::string, std::string> sockets_;  // by name
  std::map<std::string, std::string> served_;   // the name that the child knows
};

void serve(const server::ServerOptions& options, const std::vector<std::string>& children) {
  init_server_logging(LogFormat::kText);
  auto listener = std::make_unique<server::Listener>(options.host, options.port);
  const uint16_t port = listener->port();
  StartedByTheTest upstreams(listener->io(), children);
  front::FrontServer server(std::move(listener), upstreams, {.server = options});
  fmt::print("listening {}\n", port);
  std::fflush(stdout);
  server.run();
  flush_logging();
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::server::ServerOptions options;
  options.port = 0;
  options.access_log = false;
  std::vector<std::string> children;
  CLI::App app("A real front over children that a test starts");
  app.add_option("--child", children)->allow_extra_args(false);
  app.add_option("--port", options.port);
  octavo::add_key_options(app, options);
  app.add_flag("--access-log", options.access_log);
  app.add_option("--max-open-requests", options.max_open_requests);
  app.add_option("--state-dir", options.state.folder);
  app.add_option("--batch-concurrency", options.state.batch_concurrency);
  CLI11_PARSE(app, argc, argv);
  try {
    octavo::serve(options, children);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fake_front: {}\n", error.what());
    return 1;
  }
}

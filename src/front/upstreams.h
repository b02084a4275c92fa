// upstreams.h - the child processes that serve the models of a front process, one per loaded model.
// I/O thread only. No MLX.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "front/keep_alive.h"
#include "server/http/exchange.h"

namespace octavo::front {

using server::Awaitable;

// A child that serves a model. The model stays loaded, and counts as used, while the lease exists.
class UpstreamLease {
 public:
  struct Child {
    std::string model = {};   // the name the child serves under; requests are sent with it
    std::string socket = {};  // path of its Unix socket
    uint64_t generation = 0;  // different for every start of a child
  };

  UpstreamLease() = default;
  // `release` is called once, when the lease is destroyed.
  UpstreamLease(Child child, std::function<void()> release)
      : child_(std::move(child)), release_(std::move(release)) {}
  UpstreamLease(UpstreamLease&& other) noexcept
      : child_(std::move(other.child_)), release_(std::exchange(other.release_, nullptr)) {}
  UpstreamLease& operator=(UpstreamLease&& other) noexcept {
    std::swap(child_, other.child_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~UpstreamLease() {
    if (release_) release_();
  }

  const std::string& model() const { return child_.model; }
  const std::string& socket() const { return child_.socket; }
  uint64_t generation() const { return child_.generation; }

 private:
  Child child_ = {};
  std::function<void()> release_ = nullptr;
};

struct AcquireOptions {
  std::optional<KeepAlive> keep_alive = {};  // of the request; nothing: the model's own
  bool autoload = true;                      // false: only a child that runs already
  int deaths = 0;                            // of this request's child, so far
};

// A model with a running child.
struct LoadedModel {
  std::string name = {};
  std::string socket = {};
  uint64_t generation = 0;
  bool ready = false;  // false: still loading
  int open_requests = 0;
  uint64_t planned_bytes = 0;  // of its memory plan
  // When it is unloaded if no request comes; nothing: not, or requests are open.
  std::optional<std::chrono::steady_clock::time_point> expires = {};
};

class Upstreams {
 public:
  virtual ~Upstreams() = default;

  // Loads the model if needed, and unloads idle ones for it. After the death of a child
  // (`options.deaths` > 0), waits for its restart. Throws RequestError: 404 with the nearest names
  // for an unknown model; 503 if it is not loaded within the load timeout; 400 or 503 with the flag
  // to change if its memory plan can never fit.
  virtual Awaitable<UpstreamLease> acquire(const std::string& model,
                                           const AcquireOptions& options) = 0;

  // For metrics, health and `octavo ps`.
  virtual std::vector<LoadedModel> loaded() const = 0;

  // The model of requests that name none: the only one loaded or named on the command line.
  // nullopt: there is not exactly one.
  virtual std::optional<std::string> default_model() const = 0;
  // Names to list in an error; may be cut short.
  virtual std::vector<std::string> known_names() const = 0;
};

}  // namespace octavo::front

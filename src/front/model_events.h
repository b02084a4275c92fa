// model_events.h - the events of a pool as Server-Sent Events, for one client. I/O thread only. No
// MLX.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <string>

#include "front/model_pool.h"
#include "front/model_routes.h"

namespace octavo::front {

class ModelEvents {
 public:
  // Both must outlive it.
  ModelEvents(ModelPool& pool, const ModelRouteOptions& options);
  ~ModelEvents();
  ModelEvents(const ModelEvents&) = delete;
  ModelEvents& operator=(const ModelEvents&) = delete;

  // The text of the next events, or a comment if there is none for a while. Empty: the server
  // drains.
  Awaitable<std::string> next();

 private:
  void add(const ModelEvent& event);

  ModelPool& pool_;
  const ModelRouteOptions& options_;
  uint64_t subscription_;
  boost::asio::steady_timer timer_;
  std::deque<std::string> waiting_;
};

}  // namespace octavo::front

#include "front/model_events.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace octavo::front {
namespace {

// A client that reads so slowly misses the oldest events.
constexpr size_t kMostEvents = 1024;
constexpr std::chrono::milliseconds kDrainTick{500};

}  // namespace

ModelEvents::ModelEvents(ModelPool& pool, const ModelRouteOptions& options)
    : pool_(pool),
      options_(options),
      subscription_(pool.subscribe([this](const ModelEvent& event) { add(event); })),
      timer_(pool.io()) {}

ModelEvents::~ModelEvents() { pool_.unsubscribe(subscription_); }

void ModelEvents::add(const ModelEvent& event) {
  if (waiting_.size() == kMostEvents) waiting_.pop_front();
  waiting_.push_back("data: " + api::dump(event_json(event, event.model)) + "\n\n");
  timer_.cancel();
}

Awaitable<std::string> ModelEvents::next() {
  namespace asio = boost::asio;
  const auto quiet_until = std::chrono::steady_clock::now() + options_.sse_keepalive;
  const bool has_comments = options_.sse_keepalive.count() > 0;
  while (waiting_.empty()) {
    if (options_.is_draining && options_.is_draining()) co_return std::string();
    if (has_comments && std::chrono::steady_clock::now() >= quiet_until)
      co_return std::string(": keep-alive\n\n");
    // Nothing signals a drain, so poll.
    timer_.expires_after(kDrainTick);
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  std::string text;
  for (const std::string& event : std::exchange(waiting_, {})) text += event;
  co_return text;
}

}  // namespace octavo::front

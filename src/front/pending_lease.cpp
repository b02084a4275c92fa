#include "front/pending_lease.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace octavo::front {

namespace asio = boost::asio;

struct PendingLease::State {
  State(asio::io_context& io, std::string name, AcquireOptions acquire_options)
      : model(std::move(name)), options(std::move(acquire_options)), timer(io) {}

  const std::string model;
  const AcquireOptions options;
  asio::steady_timer timer;
  asio::cancellation_signal cancel;
  bool done = false;
  std::exception_ptr error = nullptr;
  UpstreamLease lease = {};
};

PendingLease::PendingLease(asio::io_context& io, Upstreams& upstreams, std::string model,
                           AcquireOptions options)
    : state_(std::make_shared<State>(io, std::move(model), std::move(options))) {
  auto ended = [state = state_](const std::exception_ptr& error, UpstreamLease lease) {
    state->done = true;
    state->error = error;
    state->lease = std::move(lease);
    state->timer.cancel();
  };
  asio::co_spawn(io, upstreams.acquire(state_->model, state_->options),
                 asio::bind_cancellation_slot(state_->cancel.slot(), std::move(ended)));
}

PendingLease::~PendingLease() {
  if (!state_->done) state_->cancel.emit(asio::cancellation_type::all);
}

bool PendingLease::done() const { return state_->done; }

Awaitable<void> PendingLease::wait(Clock::time_point deadline) {
  const std::shared_ptr<State> state = state_;
  if (state->done) co_return;
  state->timer.expires_at(deadline);
  boost::system::error_code ignored;
  co_await state->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void PendingLease::wake() { state_->timer.cancel(); }

UpstreamLease PendingLease::take() {
  if (state_->error) std::rethrow_exception(state_->error);
  return std::move(state_->lease);
}

}  // namespace octavo::front

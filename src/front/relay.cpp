#include "front/relay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "server/front_notes.h"
#include "server/http/endpoint.h"
#include "server/persistent_state.h"
#include "server/request_timeout.h"
#include "state/response_model_table.h"

namespace octavo::front {
namespace {

using Got = UpstreamConnection::Got;

constexpr int kMostDeaths = 2;  // of children that one request may see
// A child that has ended is noticed within this time, and its successor waited for by acquire().
constexpr std::chrono::milliseconds kNoticePause{20};
constexpr std::chrono::seconds kNoticeLimit{10};

std::string names_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kMost)));
  return fmt::format("{}{}", fmt::join(first, ", "), names.size() > kMost ? ", ..." : "");
}

std::string only_model(const Upstreams& upstreams) {
  if (auto model = upstreams.default_model()) return *model;
  const std::vector<std::string> names = upstreams.known_names();
  throw RequestError(400, "model",
                     names.empty() ? "is missing, and there are no models"
                                   : "is missing; choose one of " + names_of(names));
}

}  // namespace

Relay::Relay(FrontContext& context, server::Exchange& exchange)
    : context_(context),
      exchange_(exchange),
      place_(context, exchange.request()),
      body_(exchange.take_body()),
      tenant_(context.tenants.of(exchange.request())),
      pause_(context.io) {
  context_.relays.insert(this);
  exchange_.on_client_gone([this] { wake(); });
}

Relay::~Relay() {
  exchange_.on_client_gone(nullptr);
  context_.relays.erase(this);
}

void Relay::wake() {
  if (connection_) connection_->abort();
  if (pending_ != nullptr) pending_->wake();
  pause_.cancel();
}

void Relay::cut_off() {
  cut_off_ = true;
  exchange_.note("ended_by", "shutdown");
  wake();
}

void Relay::check() const {
  if (exchange_.client_gone()) throw server::ClientGone();
  if (cut_off_) throw RequestError(503, "", "the server is shutting down");
  server::check_deadline(context_, exchange_);
}

Awaitable<void> Relay::run_by_body() {
  server::require_json(exchange_.request());
  fields_ = routing_fields(body_.text);
  target_ = {.model = fields_->model.empty() ? only_model(context_.upstreams) : fields_->model,
             .options = {.keep_alive = fields_->keep_alive}};
  co_await relay();
}

Awaitable<void> Relay::run_to(RelayTarget target) {
  target_ = std::move(target);
  co_await relay();
}

Awaitable<void> Relay::relay() {
  exchange_.note("model", target_.model);
  std::string error_event;
  try {
    co_await relay_until_done();
  } catch (const RequestError& error) {
    if (!exchange_.started()) throw;
    error_event = stream_error(exchange_.request().path, error, numbers_);
  }
  if (!error_event.empty()) co_await exchange_.write(error_event);
}

Awaitable<void> Relay::relay_until_done() {
  while (true) {
    const UpstreamLease child = co_await acquire();
    const Outcome outcome = co_await attempt(child);
    connection_ = nullptr;
    if (outcome == Outcome::kDone) co_return;
    check();
    prepare_next(child, outcome);
    // Until the end of the child is noticed, acquire() may return it again.
    if (outcome == Outcome::kNoChild) co_await pause(kNoticePause);
  }
}

void Relay::prepare_next(const UpstreamLease& child, Outcome outcome) {
  const bool known = outcome == Outcome::kNoChild && failed_ == child.generation();
  if (!known) {
    failed_ = child.generation();
    failed_at_ = Clock::now();
    if (++target_.options.deaths >= kMostDeaths)
      throw RequestError(503, "",
                         "the process of the model ended twice while it served this request");
    spdlog::warn("request {}: the process of {} ended; waiting for the next one",
                 exchange_.request().id, target_.model);
    (exchange_.started() ? context_.metrics.resumed_streams : context_.metrics.resent_requests)
        .Increment();
    exchange_.note(exchange_.started() ? "resumed" : "resent", "true");
  } else if (Clock::now() > failed_at_ + kNoticeLimit) {
    throw RequestError(503, "", "the process of the model ended and was not started again");
  }
  if (!exchange_.started()) answer_ = {};
}

Awaitable<void> Relay::pause(std::chrono::milliseconds time) {
  pause_.expires_after(time);
  boost::system::error_code ignored;
  co_await pause_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
  check();
}

Awaitable<UpstreamLease> Relay::acquire() {
  PendingLease pending(context_.io, context_.upstreams, target_.model, target_.options);
  pending_ = &pending;
  const std::unique_ptr<PendingLease*, void (*)(PendingLease**)> forget(
      &pending_, [](PendingLease** each) { *each = nullptr; });
  while (!pending.done()) {
    const auto deadline = silence_deadline();
    co_await pending.wait(std::min(deadline, exchange_.request().deadline));
    check();
    if (!pending.done() && Clock::now() >= deadline) co_await keep_client_alive();
  }
  co_return pending.take();
}

Relay::Clock::time_point Relay::silence_deadline() const {
  const auto silence = context_.options.sse_keepalive;
  const bool sends = exchange_.started() && sends_events_ && silence.count() > 0;
  return sends ? last_write_ + silence : Clock::time_point::max();
}

Awaitable<void> Relay::keep_client_alive() {
  co_await exchange_.write(": keep-alive\n\n");
  last_write_ = Clock::now();
}

Awaitable<Got> Relay::next_piece() {
  while (true) {
    const auto deadline = std::min(silence_deadline(), exchange_.request().deadline);
    const Got got = co_await connection_->read(deadline);
    check();
    if (got != Got::kSilence) co_return got;
    co_await keep_client_alive();
  }
}

std::optional<std::string> Relay::changed_body(const UpstreamLease& child) const {
  if (!fields_) return std::nullopt;
  const bool resumes = answer_.can_resume() && exchange_.started();
  const bool renames =
      !fields_->model.empty() && !child.model().empty() && fields_->model != child.model();
  if (!resumes && !renames) return std::nullopt;
  std::string body = body_.text;
  if (resumes) {
    body.insert(fields_->end, answer_.members());
    if (fields_->has_members) body.insert(fields_->end, 1, ',');
  }
  // The name stands before the end, so it has not moved.
  return renames ? with_model(body, *fields_, child.model()) : body;
}

// True: the head of the response is there.
Awaitable<bool> Relay::request_from(const UpstreamLease& child) {
  const std::optional<std::string> changed = changed_body(child);
  const std::string_view body = changed ? *changed : body_.text;
  const server::Tenant tenant{.owner = context_.tenants.stored(tenant_.owner),
                              .cache_namespace = tenant_.cache_namespace};
  const HeadNotes notes{
      .tenant = to_text(tenant),
      .key_name = server::key_name_of(context_, exchange_.request()).value_or("")};
  const std::string head = request_head(exchange_.request(), notes, body.size());
  auto [connection, reused] = context_.connections.take(child);
  while (true) {
    connection_ = connection;
    if (!reused) {
      const bool connected = co_await connection->connect(child.socket());
      check();
      if (!connected) co_return false;
    }
    co_await connection->send(head, body);
    const Got got = co_await next_piece();
    if (got == Got::kHead) co_return true;
    // The child closes connections that were idle for long.
    if (!reused || connection->answered()) co_return false;
    connection = context_.connections.fresh();
    reused = false;
  }
}

Awaitable<Relay::Outcome> Relay::attempt(const UpstreamLease& child) {
  const bool answered = co_await request_from(child);
  if (!answered) co_return connection_->answered() ? Outcome::kBroken : Outcome::kNoChild;
  const ChildResponse& head = connection_->head();
  if (is_stream(head) && !answer_id(head).empty()) co_return co_await relay_stream(child);
  if (exchange_.started()) co_await refuse_to_continue();
  co_return co_await relay_whole(child);
}

void Relay::remember_response(const UpstreamLease& child, const ChildResponse& response) {
  if (exchange_.request().path != "/v1/responses") return;
  if (answer_id(response).empty()) return;
  const std::string id = "resp_" + answer_id(response);
  context_.responses.remember(tenant_.owner, id,
                              {.model = target_.model, .generation = child.generation()});
  if (!context_.state) return;
  context_.state->post([owner = context_.tenants.stored(tenant_.owner), id,
                        model = target_.model](const state::Database& database) {
    state::ResponseModelTable(database).put(owner, id, model);
  });
}

Awaitable<Relay::Outcome> Relay::relay_whole(const UpstreamLease& child) {
  server::HttpResponse response = response_head(connection_->head());
  auto held = *context_.bodies.try_lend(0);
  while (true) {
    // A response that may have to wait for its end takes memory. If there is none left, or if it is a
    // stream that cannot be resumed, it is passed on as it comes.
    const bool fits = held.grow_to(static_cast<int64_t>(connection_->body_size()));
    if (!fits || is_stream(connection_->head())) {
      co_await pass_on_pieces(std::move(response));
      co_return Outcome::kDone;
    }
    const Got got =
        co_await connection_->read(exchange_.request().deadline, connection_->body_size());
    check();
    if (got == Got::kBroken) co_return Outcome::kBroken;
    if (got == Got::kEnd) break;
  }
  remember_response(child, connection_->head());
  response.body = connection_->take_body();
  context_.connections.give_back(child, std::move(connection_));
  co_await exchange_.send(std::move(response));
  co_return Outcome::kDone;
}

Awaitable<void> Relay::pass_on_pieces(server::HttpResponse head) {
  co_await exchange_.start_stream(std::move(head));
  while (true) {
    const std::string piece = connection_->take_body();
    if (!piece.empty()) co_await exchange_.write(piece);
    const Got got = co_await connection_->read(exchange_.request().deadline);
    check();
    if (got == Got::kEnd) co_return;
    // The client notices that the response has no end.
    if (got == Got::kBroken) throw server::ClientGone();
  }
}

Awaitable<void> Relay::write(std::string_view bytes) {
  if (bytes.empty()) co_return;
  if (!exchange_.started()) co_await exchange_.start_stream(std::move(stream_head_));
  numbers_.saw(bytes);
  co_await exchange_.write(bytes);
  last_write_ = Clock::now();
}

Awaitable<Relay::Outcome> Relay::relay_stream(const UpstreamLease& child) {
  if (!exchange_.started()) stream_head_ = response_head(connection_->head());
  sends_events_ = is_event_stream(connection_->head());
  remember_response(child, connection_->head());
  StreamParts parts(answer_);
  while (true) {
    const Got got = co_await next_piece();
    if (got == Got::kBroken) co_return Outcome::kBroken;
    std::string out;
    if (got == Got::kBody) {
      parts.put(connection_->take_body());
      out = parts.take();
    } else if (got == Got::kEnd) {
      out = parts.take_last();
      context_.connections.give_back(child, std::move(connection_));
    }
    co_await write(out);
    if (got == Got::kEnd) co_return Outcome::kDone;
  }
}

// The child answered the request to continue a stream with an error.
Awaitable<void> Relay::refuse_to_continue() {
  const int status = response_head(connection_->head()).status;
  std::string body;
  for (Got got = Got::kBody; got == Got::kBody; got = co_await next_piece())
    body += connection_->take_body();
  spdlog::warn("request {}: the new process of {} refused to continue with status {}: {}",
               exchange_.request().id, target_.model, status, body.substr(0, 300));
  throw RequestError(
      500, "",
      fmt::format("the process of the model ended, and its successor could not continue the answer "
                  "(status {})",
                  status));
}

}  // namespace octavo::front

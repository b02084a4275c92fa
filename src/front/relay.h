// relay.h - passes one request to the child that serves its model, and the response to the client. If
// the child ends, the request is sent to the next one: from the beginning if nothing of the response
// was sent, otherwise a stream is continued with the next byte. I/O thread only. No MLX.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "front/front_context.h"
#include "front/pending_lease.h"
#include "front/relay_head.h"
#include "front/routing_fields.h"
#include "front/stream_error.h"
#include "front/stream_parts.h"
#include "front/upstream_connection.h"
#include "server/http/exchange.h"

namespace octavo::front {

// Where a request goes.
struct RelayTarget {
  std::string model = {};
  AcquireOptions options = {};
};

class Relay {
 public:
  Relay(FrontContext& context, server::Exchange& exchange);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // A request whose JSON body names the model. If it names none, the only model is used.
  Awaitable<void> run_by_body();
  // A request without a body.
  Awaitable<void> run_to(RelayTarget target);

  // Ends the request with an error, for shutdown.
  void cut_off();

 private:
  using Clock = std::chrono::steady_clock;

  enum class Outcome : uint8_t { kDone, kNoChild, kBroken };

  Awaitable<void> relay();
  Awaitable<void> relay_until_done();
  Awaitable<UpstreamLease> acquire();
  Awaitable<Outcome> attempt(const UpstreamLease& child);
  Awaitable<bool> request_from(const UpstreamLease& child);
  Awaitable<Outcome> relay_whole(const UpstreamLease& child);
  Awaitable<Outcome> relay_stream(const UpstreamLease& child);
  Awaitable<void> refuse_to_continue();
  Awaitable<void> pass_on_pieces(server::HttpResponse head);
  Awaitable<UpstreamConnection::Got> next_piece();
  Awaitable<void> write(std::string_view bytes);
  Awaitable<void> keep_client_alive();
  Awaitable<void> pause(std::chrono::milliseconds time);

  // Nothing: the body as it came.
  std::optional<std::string> changed_body(const UpstreamLease& child) const;
  void prepare_next(const UpstreamLease& child, Outcome outcome);
  void remember_response(const UpstreamLease& child, const ChildResponse& response);
  Clock::time_point silence_deadline() const;
  void check() const;
  void wake();

  FrontContext& context_;
  server::Exchange& exchange_;
  FrontContext::Place place_;
  server::HeldBody body_;
  std::optional<RoutingFields> fields_ = {};  // nothing: the request has no JSON body
  RelayTarget target_ = {};
  server::Tenant tenant_;
  boost::asio::steady_timer pause_;

  AnswerSoFar answer_;
  SequenceNumbers numbers_;
  server::HttpResponse stream_head_ = {};
  bool sends_events_ = false;            // the response is a stream of server-sent events
  std::optional<uint64_t> failed_ = {};  // the generation of the child that ended
  Clock::time_point failed_at_ = {};
  Clock::time_point last_write_ = {};  // to the client, of a stream
  bool cut_off_ = false;

  PendingLease* pending_ = nullptr;
  std::shared_ptr<UpstreamConnection> connection_ = nullptr;
};

}  // namespace octavo::front

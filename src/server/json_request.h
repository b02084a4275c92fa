// json_request.h - parses and processes a JSON body off the I/O thread.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "server/http/endpoint.h"
#include "server/server_context.h"

namespace octavo::server {

// Returns `work(body, preparation)` on a text worker, as ServerContext::prepare(). The body must be
// declared as JSON. Its share of max_open_bytes is kept until
// the exchange ends, for what remains of it: tokens, tools, stop strings.
template <typename Work>
Awaitable<std::invoke_result_t<Work&, std::string, const api::Preparation&>> with_text_body(
    ServerContext& context, Exchange& exchange, Work work) {
  require_json(exchange.request());
  HeldBody body = exchange.take_body();
  // Shared, because the work may end after the exchange.
  const auto share = std::make_shared<Allowance::Lease>(std::move(body.bytes));
  exchange.hold(share);
  auto on_worker = [text = std::move(body.text), share, work = std::move(work),
                    &options = context.options](const api::Preparation& preparation) mutable {
    if (options.on_preparation) options.on_preparation(text);
    return work(std::move(text), preparation);
  };
  co_return co_await context.prepare(exchange, std::move(on_worker));
}

// The same with the parsed body, which is freed afterwards.
template <typename Work>
Awaitable<std::invoke_result_t<Work&, const api::Json&, const api::Preparation&>> with_json_body(
    ServerContext& context, Exchange& exchange, Work work) {
  auto parsing = [work = std::move(work)](std::string text,
                                          const api::Preparation& preparation) mutable {
    const api::Json body = api::parse_object(text);
    text = std::string();  // with images, long; the work may wait for others
    return work(body, preparation);
  };
  co_return co_await with_text_body(context, exchange, std::move(parsing));
}

}  // namespace octavo::server

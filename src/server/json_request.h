// json_request.h - parses and processes a JSON body off the I/O thread.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "server/http/endpoint.h"
#include "server/server_context.h"

namespace octavo::server {

// Parses the request body and returns `work(json, preparation)`, both on a text worker, as
// ServerContext::prepare(). The body is freed afterwards. Its share of max_open_bytes is kept until
// the exchange ends, for what remains of it: tokens, tools, stop strings.
template <typename Work>
Awaitable<std::invoke_result_t<Work&, const api::Json&, const api::Preparation&>> with_json_body(
    ServerContext& context, Exchange& exchange, Work work) {
  require_json(exchange.request());
  HeldBody body = exchange.take_body();
  // Shared, because the work may end after the exchange.
  const auto share = std::make_shared<Allowance::Lease>(std::move(body.bytes));
  exchange.hold(share);
  auto on_worker = [text = std::move(body.text), share, work = std::move(work),
                    &options = context.options](const api::Preparation& preparation) mutable {
    if (options.on_preparation) options.on_preparation(text);
    return work(api::parse_object(text), preparation);
  };
  co_return co_await context.prepare(exchange, std::move(on_worker));
}

}  // namespace octavo::server

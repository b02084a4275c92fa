// json_request.h - parses and processes a JSON body off the I/O thread.
#pragma once

#include <type_traits>
#include <utility>

#include "server/http/endpoint.h"
#include "server/server_context.h"

namespace octavo::server {

// Parses the request body and returns `work(json, preparation)`, both on a text worker, as
// ServerContext::prepare(). The body is freed afterwards: only its tokens remain.
template <typename Work>
Awaitable<std::invoke_result_t<Work&, const api::Json&, const api::Preparation&>> with_json_body(
    ServerContext& context, Exchange& exchange, Work work) {
  require_json(exchange.request());
  auto on_worker = [body = exchange.take_body(), work = std::move(work),
                    &options = context.options](const api::Preparation& preparation) mutable {
    if (options.on_preparation) options.on_preparation(body.text);
    return work(api::parse_object(body.text), preparation);
  };
  co_return co_await context.prepare(exchange, std::move(on_worker));
}

}  // namespace octavo::server

// json_request.h - parses and processes a JSON body off the I/O thread.
#pragma once

#include <utility>

#include "server/http/endpoint.h"
#include "server/server_context.h"

namespace octavo::server {

// Parses the request body and returns `work`'s result, both on a text worker. The body is freed
// afterwards: only its tokens remain.
template <typename Work>
Awaitable<std::invoke_result_t<Work, const api::Json&>> with_json_body(ServerContext& context,
                                                                       Exchange& exchange,
                                                                       Work work) {
  require_json(exchange.request());
  const HeldBody body = exchange.take_body();
  const auto on_worker = [&] { return work(api::parse_object(body.text)); };
  co_return co_await context.on_text_worker(on_worker);
}

}  // namespace octavo::server

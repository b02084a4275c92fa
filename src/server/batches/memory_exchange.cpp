#include "server/batches/memory_exchange.h"

#include "api/api_error.h"

namespace octavo::server {

Awaitable<void> MemoryExchange::send(HttpResponse response) {
  if (left_) throw ClientGone();
  if (response.error)
    response.body =
        api::error_body(api::error_style_of(request_.path), response.status, *response.error);
  response_ = std::move(response);
  co_return;
}

Awaitable<void> MemoryExchange::start_stream(HttpResponse head) {
  if (left_) throw ClientGone();
  response_ = std::move(head);
  co_return;
}

Awaitable<void> MemoryExchange::write(std::string_view bytes) {
  if (left_) throw ClientGone();
  response_->body += bytes;
  co_return;
}

void MemoryExchange::leave() {
  left_ = true;
  if (on_leave_) std::exchange(on_leave_, nullptr)();
}

}  // namespace octavo::server

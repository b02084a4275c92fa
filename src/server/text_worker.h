// text_worker.h - ServerContext::on_text_worker, apart because it drags in most of Asio.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "server/server_context.h"

namespace octavo::server {

template <typename Work>
Awaitable<std::invoke_result_t<Work>> ServerContext::on_text_worker(Work work) {
  using Result = std::invoke_result_t<Work>;
  // The coroutine's argument lives in its frame; a lambda's captures would not.
  const auto run = [](Work inner) -> Awaitable<Result> { co_return inner(); };
  co_return co_await boost::asio::co_spawn(text_workers_, run(std::move(work)),
                                           boost::asio::use_awaitable);
}

}  // namespace octavo::server

#include "bench/load/http_call.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>

#include "bench/load/http_client.h"
#include "bench/load/server_error.h"

namespace octavo::bench {

HttpReply http_call(const ServerUrl& url, const HttpRequest& request) {
  boost::asio::io_context context(1);
  HttpClient client(context, url);
  HttpReply reply;
  const auto on_body = [&](int, std::string_view piece) { reply.body += piece; };
  boost::asio::co_spawn(context, client.send(request, on_body),
                        [&](const std::exception_ptr& failed, const HttpOutcome& outcome) {
                          if (failed) std::rethrow_exception(failed);
                          reply.status = outcome.status;
                          reply.error = outcome.error;
                        });
  context.run();
  return reply;
}

std::string reason_of(const HttpReply& reply) {
  if (!reply.error.empty()) return reply.error;
  const std::string text = error_text(reply.body);
  return fmt::format("HTTP {}{}{}", reply.status, text.empty() ? "" : ": ", text);
}

}  // namespace octavo::bench

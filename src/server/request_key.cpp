#include "server/request_key.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "server/front_notes.h"

namespace octavo::server {

KeyLease lease_of_key(HttpContext& context, const HttpRequest& request) {
  const auto& key = request.key;
  if (!key || context.options.max_requests_per_key == 0) return {};
  auto lease = key->requests.try_lend(1);
  if (!lease) {
    context.http_metrics().refusals(Refusal::kKeyRequests).Increment();
    throw RequestError(429, "",
                       fmt::format("this API key has {} open requests, which is its limit "
                                   "(--max-requests-per-key); wait until one has finished, or use "
                                   "fewer at once",
                                   key->requests.lent()));
  }
  return {.key = key, .lease = std::move(*lease)};
}

std::optional<std::string> key_name_of(const HttpContext& context, const HttpRequest& request) {
  if (context.options.behind_front) {
    if (request.header(kTenantHeader).empty()) return std::nullopt;
    return std::string(request.header(kKeyNameHeader));
  }
  if (context.keys.size() == 0) return std::nullopt;
  const auto key =
      request.batch_owner ? context.keys.find_owner(*request.batch_owner) : request.key;
  return key ? key->name : "";
}

}  // namespace octavo::server

#include "server/batches/state_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace octavo::server {

using namespace api;

PersistentState& state_of(HttpContext& context) {
  if (!context.state)
    throw RequestError(501, "",
                       "files and batches need a folder to be stored in: start the server with "
                       "--state-dir DIR");
  return *context.state;
}

std::string state_owner(const HttpContext& context, const HttpRequest& request) {
  return context.tenants.stored(context.tenants.of(request).owner);
}

int state_parts(const HttpContext& context) { return context.keys.size() > 1 ? 2 : 1; }

state::Page page_of(const HttpRequest& request, int default_limit, int most) {
  state::Page page{.limit = default_limit,
                   .after = query_value(request.query, "after").value_or("")};
  if (const auto limit = query_value(request.query, "limit")) {
    const char* end = limit->data() + limit->size();
    const auto read = std::from_chars(limit->data(), end, page.limit);
    if (read.ec != std::errc() || read.ptr != end || page.limit < 1 || page.limit > most)
      throw RequestError(400, "limit", fmt::format("must be a whole number from 1 to {}", most));
  }
  const auto order = query_value(request.query, "order");
  if (order && *order != "asc" && *order != "desc")
    throw RequestError(400, "order", "must be asc or desc");
  page.oldest_first = order == "asc";
  return page;
}

void refuse_other_sites(const HttpContext& context, const HttpRequest& request) {
  const std::string_view origin = request.header("Origin");
  if (origin.empty()) return;
  const std::string_view host = request.header("Host");
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme) && equal_ignoring_case(origin.substr(scheme.size()), host))
      return;
  const auto& allowed = context.options.cors.allowed_origins;
  const bool listed = std::ranges::any_of(
      allowed, [&](const std::string& one) { return one == "*" || one == origin; });
  if (!listed)
    throw RequestError(
        403, "", fmt::format("{} is not allowed; start the server with --allowed-origins", origin));
}

std::string id_in_path(const HttpRequest& request, std::string_view prefix,
                       std::string_view suffix) {
  return request.path.substr(prefix.size(), request.path.size() - prefix.size() - suffix.size());
}

namespace {

void add_parameter(Json& doc, const char* name, const char* where, Json schema) {
  doc["parameters"].push_back({{"name", name},
                               {"in", where},
                               {"required", std::string_view(where) == "path"},
                               {"schema", std::move(schema)}});
}

}  // namespace

Json with_path_id(Json doc, const char* name) {
  add_parameter(doc, name, "path", {{"type", "string"}, {"minLength", 1}});
  return doc;
}

Json with_page(Json doc) {
  add_parameter(doc, "limit", "query", {{"type", "integer"}, {"minimum", 1}});
  add_parameter(doc, "after", "query", {{"type", "string"}});
  return doc;
}

}  // namespace octavo::server

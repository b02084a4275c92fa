#include "front/relay_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "server/front_notes.h"
#include "server/request_timeout.h"

namespace octavo::front {
namespace {

using server::equal_ignoring_case;

bool is_among(std::string_view name, const auto& names) {
  return std::ranges::any_of(
      names, [&](std::string_view each) { return equal_ignoring_case(each, name); });
}

constexpr std::array<std::string_view, 9> kHopByHop = {"Connection",
                                                       "Keep-Alive",
                                                       "Proxy-Authenticate",
                                                       "Proxy-Authorization",
                                                       "Proxy-Connection",
                                                       "TE",
                                                       "Trailer",
                                                       "Transfer-Encoding",
                                                       "Upgrade"};
// The front sets these, or does what they ask for.
constexpr std::array<std::string_view, 9> kOfTheFront = {
    "Host",   "Content-Length", "Expect",          "Authorization",       "x-api-key",
    "Origin", "X-Request-Id",   "Accept-Encoding", server::kTimeoutHeader};
constexpr std::array<std::string_view, 5> kResponseOfTheFront = {
    "Content-Length", "Content-Type", "X-Request-Id", "X-Content-Type-Options", "Vary"};

std::string_view header_word(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower;
}

// The names in all headers Connection, which only concern one connection. In lower case and sorted,
// since a client may send thousands.
std::set<std::string> named_by_connection(const server::HttpRequest& request) {
  std::set<std::string> names;
  for (const auto& [name, value] : request.headers) {
    if (!equal_ignoring_case(name, "Connection")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      names.insert(in_lower_case(header_word(rest.substr(0, comma))));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return names;
}

bool is_private(std::string_view name) {
  return is_among(
      name, std::array<std::string_view, 4>{server::kTenantHeader, server::kKeyNameHeader,
                                            server::kBackgroundHeader, server::kAnswerHeader});
}

std::string percent_encoded(std::string_view path) {
  std::string encoded;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string_view text_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string_view content_type(const ChildResponse& response) {
  return text_of(response[boost::beast::http::field::content_type]);
}

}  // namespace

std::string request_head(const server::HttpRequest& request, const HeadNotes& notes,
                         size_t body_bytes) {
  // A child's GET serves HEAD; the front does not send the body then.
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string head = fmt::format("{} {}{}{} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {}\r\n",
                                 method, percent_encoded(request.path),
                                 request.query.empty() ? "" : "?", request.query, request.id);
  if (!notes.tenant.empty()) head += fmt::format("{}: {}\r\n", server::kTenantHeader, notes.tenant);
  if (!notes.key_name.empty())
    head += fmt::format("{}: {}\r\n", server::kKeyNameHeader, notes.key_name);
  if (request.batch_owner) head += fmt::format("{}: true\r\n", server::kBackgroundHeader);
  if (body_bytes > 0 || method != "GET") head += fmt::format("Content-Length: {}\r\n", body_bytes);
  const auto dropped = named_by_connection(request);
  for (const auto& [name, value] : request.headers) {
    if (is_among(name, kHopByHop) || is_among(name, kOfTheFront) || is_private(name) ||
        (dropped.contains(in_lower_case(name)) && !equal_ignoring_case(name, "Content-Type")))
      continue;
    head += fmt::format("{}: {}\r\n", name, value);
  }
  return head + "\r\n";
}

server::HttpResponse response_head(const ChildResponse& response) {
  server::HttpResponse head{.status = static_cast<int>(response.result_int()),
                            .content_type = std::string(content_type(response))};
  for (const auto& field : response) {
    const std::string_view name = text_of(field.name_string());
    if (is_among(name, kHopByHop) || is_among(name, kResponseOfTheFront) || is_private(name))
      continue;
    head.headers.emplace_back(std::string(name), std::string(text_of(field.value())));
  }
  return head;
}

bool is_event_stream(const ChildResponse& response) {
  return content_type(response).starts_with("text/event-stream");
}

bool is_stream(const ChildResponse& response) {
  return is_event_stream(response) || content_type(response).starts_with("application/x-ndjson");
}

std::string answer_id(const ChildResponse& response) {
  return std::string(text_of(response[server::kAnswerHeader]));
}

}  // namespace octavo::front

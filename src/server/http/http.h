// http.h - requests and responses as endpoints see them: no socket, no parser.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/api_error.h"

namespace octavo::server {

struct AcceptedKey;

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {};
  std::string path = {};   // without the query, percent-decoded
  std::string query = {};  // after the question mark
  Headers headers = {};
  std::string id = {};  // the client's X-Request-Id, or a fresh id
  // Only of a line of a batch, which the server sends to itself: its owner (Tenant), instead of a
  // key. It runs in the background.
  std::optional<std::string> batch_owner = {};
  std::shared_ptr<AcceptedKey> key = nullptr;  // null: none is required, or none that is accepted
  // From the header x-request-timeout; then the request ends with 504.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

  // The first header of that name, ignoring case; empty if there is none.
  std::string_view header(std::string_view name) const;
  // Whether the headers announce a body. A body of length 0 is none.
  bool has_body() const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers = {};
  std::string body = {};
  // Instead of a body: the exchange writes it in the API's format.
  std::optional<api::ErrorNote> error = {};
};

bool equal_ignoring_case(std::string_view a, std::string_view b);
// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);

// The value of `name` in a query "a=1&b=2", percent-decoded; nothing without it.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// Decodes "%2F" to "/" and so on; invalid escapes are kept.
std::string percent_decoded(std::string_view text);

}  // namespace octavo::server

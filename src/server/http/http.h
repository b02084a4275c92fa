// http.h - a request and its answer, as endpoints see them: no socket, no parser.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/api_error.h"

namespace octavo::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {};
  std::string path = {};   // without the query, percent-decoded
  std::string query = {};  // behind the question mark
  Headers headers = {};
  std::string id = {};  // X-Request-Id of the client, or one of ours

  // The first header of that name, in any case; empty when there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers = {};
  std::string body = {};
  // In place of a body: the exchange writes it as the API that was asked does.
  std::optional<api::ErrorNote> error = {};
};

bool equal_ignoring_case(std::string_view a, std::string_view b);

// "%2F" to "/" and so on; what is no escape stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace octavo::server

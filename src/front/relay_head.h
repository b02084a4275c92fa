// relay_head.h - the heads of requests to children and of their responses. No MLX.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <string_view>

#include "server/http/http.h"

namespace octavo::front {

using ChildResponse = boost::beast::http::response<boost::beast::http::string_body>;

// What the child learns of the API key, which stays with the front; both empty without keys.
struct HeadNotes {
  std::string tenant = {};    // whose request it is, as server::to_text()
  std::string key_name = {};  // for metrics
};

// Up to and including the empty line. A line of a batch is marked as such. The front itself ends a
// request at its deadline.
std::string request_head(const server::HttpRequest& request, const HeadNotes& notes,
                         size_t body_bytes);
// Status, type and headers for the client, without those that the front sets itself.
server::HttpResponse response_head(const ChildResponse& response);

bool is_event_stream(const ChildResponse& response);
// Server-sent events, or lines of JSON.
bool is_stream(const ChildResponse& response);
// The value of kAnswerHeader; empty: the response was not generated.
std::string answer_id(const ChildResponse& response);

}  // namespace octavo::front

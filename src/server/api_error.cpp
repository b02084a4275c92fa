#include "server/api_error.h"

#include <fmt/format.h>

#include "server/json_text.h"

namespace octavo::server {

std::string_view error_type(int status) {
  switch (status) {
    case 400:
      return "BadRequestError";
    case 401:
      return "AuthenticationError";
    case 404:
      return "NotFoundError";
    case 405:
      return "MethodNotAllowedError";
    case 408:
      return "RequestTimeoutError";
    case 413:
      return "RequestTooLargeError";
    case 415:
      return "UnsupportedMediaTypeError";
    case 422:
      return "UnprocessableEntityError";
    case 429:
      return "RateLimitError";
    case 431:
      return "HeadersTooLargeError";
    case 503:
      return "ServiceUnavailableError";
    default:
      return "InternalServerError";
  }
}

std::string error_body(int status, std::string_view message, std::string_view param) {
  // Names and values of the request may be in it, however long they are.
  message = message.substr(0, 1000);
  param = param.substr(0, 200);
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":{},"code":{}}}}})",
                     json_string(message), error_type(status),
                     param.empty() ? "null" : json_string(param), status);
}

HttpResponse error_response(int status, std::string_view message, std::string_view param) {
  HttpResponse response{.status = status, .body = error_body(status, message, param)};
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse error_response(const RequestError& error) {
  return error_response(error.status(), error.what(), error.param());
}

}  // namespace octavo::server

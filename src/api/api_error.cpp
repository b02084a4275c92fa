#include "api/api_error.h"

#include <fmt/format.h>

#include "api/fields/json_text.h"

namespace octavo::api {

namespace {

// Messages may quote names and values of the request, which can be long.
constexpr size_t kLongestMessage = 1000;
constexpr size_t kLongestParam = 200;

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::string_view error_type(int status) {
  switch (status) {
    case 400:
      return "BadRequestError";
    case 401:
      return "AuthenticationError";
    case 403:
      return "PermissionDeniedError";
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
    case 501:
      return "NotImplementedError";
    case 503:
      return "ServiceUnavailableError";
    case 504:
      return "GatewayTimeoutError";
    case 507:
      return "InsufficientStorageError";
    default:
      return "InternalServerError";
  }
}

std::string error_body(int status, std::string_view message, std::string_view param) {
  message = message.substr(0, kLongestMessage);
  param = param.substr(0, kLongestParam);
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":{},"code":{}}}}})",
                     json_string(message), error_type(status),
                     param.empty() ? "null" : json_string(param), status);
}

std::string anthropic_error_body(int status, std::string_view message) {
  return fmt::format(R"({{"type":"error","error":{{"type":"{}","message":{}}}}})",
                     anthropic_type(status), json_string(message.substr(0, kLongestMessage)));
}

std::string ollama_error_body(std::string_view message) {
  return fmt::format(R"({{"error":{}}})", json_string(message.substr(0, kLongestMessage)));
}

std::string error_body(ErrorStyle style, int status, const ErrorNote& error) {
  switch (style) {
    case ErrorStyle::kAnthropic:
      return anthropic_error_body(status, error.message);
    case ErrorStyle::kOllama:
      return ollama_error_body(error.message);
    default:
      return error_body(status, error.message, error.param);
  }
}

ErrorStyle error_style_of(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages";
  const bool anthropic = path == kMessages || (path.starts_with(kMessages) &&
                                               path.substr(kMessages.size()).starts_with('/'));
  if (anthropic) return ErrorStyle::kAnthropic;
  return path.starts_with("/api/") ? ErrorStyle::kOllama : ErrorStyle::kOpenAi;
}

}  // namespace octavo::api

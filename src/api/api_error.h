// api_error.h - error bodies in the formats that the clients of each API expect.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::api {

// An error, independent of the API's format.
struct ErrorNote {
  std::string message = {};
  std::string param = {};  // the request field, if any
};

enum class ErrorStyle : uint8_t {
  kOpenAi,     // {"error":{"message","type","param","code"}}
  kAnthropic,  // {"type":"error","error":{"type","message"}}
  kOllama,     // {"error":MESSAGE}
};

// The error style of `path`, which need not exist.
ErrorStyle error_style_of(std::string_view path);

// OpenAI's style; an empty `param` becomes null.
std::string error_body(int status, std::string_view message, std::string_view param = {});
// Anthropic's style, which has no param: the message names the field.
std::string anthropic_error_body(int status, std::string_view message);
// Ollama's style; the message names the field.
std::string ollama_error_body(std::string_view message);
std::string error_body(ErrorStyle style, int status, const ErrorNote& error);

// For example "BadRequestError" for 400.
std::string_view error_type(int status);

}  // namespace octavo::api

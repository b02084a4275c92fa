// api_error.h - errors as the ecosystem's clients expect them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::api {

// What went wrong; each API has its own way to write it down.
struct ErrorNote {
  std::string message = {};
  std::string param = {};  // the field it is about, if any
};

enum class ErrorStyle : uint8_t {
  kOpenAi,     // {"error":{"message","type","param","code"}}
  kAnthropic,  // {"type":"error","error":{"type","message"}}
};

// The style of whoever asks at `path`, whether there is such a path or not.
ErrorStyle error_style_of(std::string_view path);

// In OpenAI's style; `param` empty: null.
std::string error_body(int status, std::string_view message, std::string_view param = {});
// In Anthropic's style, whose messages name the field.
std::string anthropic_error_body(int status, std::string_view message);
std::string error_body(ErrorStyle style, int status, const ErrorNote& error);

// "BadRequestError" for 400 and so on.
std::string_view error_type(int status);

}  // namespace octavo::api

// server_error.h - extracts the message from a server's error response. No MLX.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace octavo::bench {

// Accepts {"error": {"message": ...}}, {"error": "..."}, {"message": ...} and {"detail": ...}.
// Empty if `answer` is not an error.
std::string error_sentence(const nlohmann::json& answer);

// For the body of an error response: its message, or else the beginning of the body, on one line.
std::string error_text(std::string_view body);

}  // namespace octavo::bench

// server_error.h - the sentence in a server's error answer. No MLX.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace octavo::bench {

// Understands {"error": {"message": ...}}, {"error": "..."}, {"message": ...} and {"detail": ...}.
// Empty: `answer` is no error.
std::string error_sentence(const nlohmann::json& answer);

// For the body of an answer that is known to be an error: its sentence, or the beginning of the
// text itself, in one line.
std::string error_text(std::string_view body);

}  // namespace octavo::bench

// log_text.h - text of unknown origin in log lines: always valid UTF-8, one line, and nothing that a
// terminal takes for a command.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// Whether `text` is valid UTF-8 without control characters (C0, DEL, C1).
bool is_clean_log_text(std::string_view text);

// Appends `text` with U+FFFD for each invalid byte and \n or \u00xx for control characters.
void append_log_text(std::string& out, std::string_view text);

// The same as a JSON string literal.
void append_log_quoted(std::string& out, std::string_view text);

}  // namespace octavo

// utf8.h - UTF-8 validation, replacement and whitespace with the same rules as Python.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Like bytes.decode("utf-8", "replace"): each maximal invalid subpart becomes one U+FFFD. Overlong
// forms, surrogates and values over U+10FFFF are invalid.
std::string replace_invalid_utf8(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);

// The number of code points in valid UTF-8.
size_t count_code_points(std::string_view text);

// Like str.strip() and str.rstrip() on valid UTF-8.
std::string_view strip_space(std::string_view text);
std::string_view strip_space_right(std::string_view text);

}  // namespace octavo

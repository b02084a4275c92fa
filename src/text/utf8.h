// utf8.h - UTF-8 as Python sees it: what decodes, what is replaced, what is white space.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Like bytes.decode("utf-8", "replace"): every maximal part that cannot begin or continue a
// character becomes one U+FFFD. Overlong forms, surrogates and values over U+10FFFF do not decode.
std::string replace_invalid_utf8(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);

// Code points of valid UTF-8.
size_t count_code_points(std::string_view text);

// Like str.strip() and str.rstrip() on valid UTF-8.
std::string_view strip_space(std::string_view text);
std::string_view strip_space_right(std::string_view text);

}  // namespace octavo

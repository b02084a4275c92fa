// json_text.h - JSON read with bounds, and written by hand where a profile would see it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace octavo::api {

// Keeps the order of keys: a chat template may print what it is given.
using Json = nlohmann::ordered_json;

inline constexpr int kJsonDepth = 128;
// Keys are found one after the other, so that many of them cost their square.
inline constexpr int kJsonKeys = 4096;                    // of one object
inline constexpr int64_t kJsonKeyComparisons = 32 << 20;  // of all, at most

// Throws RequestError(400) for anything but one JSON object in UTF-8 within the bounds above.
Json parse_object(std::string_view body);

// The string in quotes, escaped. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
void append_json_string(std::string& out, std::string_view text);

// As short as JSON allows; text that is not UTF-8 does not throw.
std::string dump(const Json& json);

}  // namespace octavo::api

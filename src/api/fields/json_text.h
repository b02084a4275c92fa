// json_text.h - JSON parsing with bounds, and fast serialization for hot paths.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace octavo::api {

// Keeps key order, because chat templates may print objects.
using Json = nlohmann::ordered_json;

inline constexpr int kJsonDepth = 128;
// Key lookup is linear, so many keys cost quadratic time.
inline constexpr int kJsonKeys = 4096;                    // of one object
inline constexpr int64_t kJsonKeyComparisons = 32 << 20;  // in the whole body
// A value of two bytes, such as [], takes up to 150 bytes of memory: this many take about eight
// times the largest body.
inline constexpr int kJsonValues = 500'000;  // in the whole body

// Throws RequestError(400) for anything but one JSON object in UTF-8 within the bounds above. Takes
// time in proportion to the body.
Json parse_object(std::string_view body);

// The string in quotes, escaped. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
void append_json_string(std::string& out, std::string_view text);

// The shortest decimal that parses to the same float, with a point or exponent so that parsers read
// a float. The value must be finite.
void append_json_number(std::string& out, float value);

// Compact; invalid UTF-8 is replaced.
std::string dump(const Json& json);

}  // namespace octavo::api

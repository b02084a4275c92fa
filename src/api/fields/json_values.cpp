#include "api/fields/json_values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace octavo::api {

void refuse(const std::string& field, const std::string& message) {
  throw RequestError(400, field, message);
}

std::string shown(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  constexpr size_t kLongest = 40;
  // Do not copy long strings, nor cut them inside a character.
  if (value.is_string() && value.get_ref<const std::string&>().size() > kLongest)
    return "a long string";
  return dump(value);
}

bool to_bool(const Json& value, const std::string& field) {
  if (!value.is_boolean())
    refuse(field, fmt::format("must be true or false, not {}", shown(value)));
  return value.get<bool>();
}

int64_t to_integer(const Json& value, const std::string& field, int64_t low, int64_t high) {
  const auto wrong = [&] {
    refuse(field,
           fmt::format("must be a whole number from {} to {}, not {}", low, high, shown(value)));
  };
  if (!value.is_number()) wrong();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    // As doubles, the bounds of int64_t are exact or rounded outwards. 2^63 is out of range, and a
    // double of -2^63 was a smaller number: -2^63 itself is parsed as an integer.
    if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high)) ||
        number >= 0x1p63 || number <= -0x1p63 || std::trunc(number) != number)
      wrong();
    return static_cast<int64_t>(number);
  }
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    wrong();
  const auto number = value.get<int64_t>();
  if (number < low || number > high) wrong();
  return number;
}

int to_int(const Json& value, const std::string& field, int low, int high) {
  return static_cast<int>(to_integer(value, field, low, high));
}

float to_number(const Json& value, const std::string& field, double low, double high) {
  const double number =
      value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!(number >= low && number <= high))
    refuse(field, fmt::format("must be a number from {} to {}, not {}", low, high, shown(value)));
  return static_cast<float>(number);
}

std::string to_string(const Json& value, const std::string& field, size_t max_bytes) {
  if (!value.is_string()) refuse(field, fmt::format("must be a string, not {}", shown(value)));
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes)
    refuse(field, fmt::format("has {} bytes; at most {} are allowed", text.size(), max_bytes));
  return text;
}

bool to_choice(const Json& value, const std::string& field, const char* first, const char* second) {
  if (value == first) return false;
  if (value != second)
    refuse(field, fmt::format("must be \"{}\" or \"{}\", not {}", first, second, shown(value)));
  return true;
}

std::vector<TokenId> to_tokens(const Json& value, const std::string& field) {
  if (!value.is_array())
    refuse(field, fmt::format("must be a list of token ids, not {}", shown(value)));
  std::vector<TokenId> tokens;
  tokens.reserve(value.size());
  for (const Json& token : value)
    tokens.push_back(to_int(token, field, 0, std::numeric_limits<TokenId>::max()));
  return tokens;
}

}  // namespace octavo::api

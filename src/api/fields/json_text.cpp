#include "api/fields/json_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_quote.h"
#include "text/utf8.h"

namespace octavo::api {

namespace {

// Builds a value from the events of the parser and enforces the bounds. The parser's own builder
// with a callback looks through the whole parent at the end of every object, so that a list of
// objects takes quadratic time.
class BoundedBuilder {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return open(Json::value_t::object); }
  bool start_array(std::size_t) { return open(Json::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    int& keys = open_.back().keys;
    comparisons_ += keys++;
    if (keys > kJsonKeys || comparisons_ > kJsonKeyComparisons)
      throw RequestError(
          400, "",
          fmt::format("the body has too many keys; an object may have at most {}", kJsonKeys));
    // The last of equal keys counts, at the place of the first.
    member_ = &(*open_.back().value)[std::move(name)];
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
    // The parser's message quotes its input, which may be long.
    const std::string_view reason = error.what();
    throw RequestError(400, "",
                       fmt::format("the body is not valid JSON: {}", reason.substr(0, 200)));
  }

  Json take() { return std::move(root_); }

 private:
  struct Open {
    Json* value;  // stays where it is: its parent gets no other element before it is closed
    int keys = 0;
  };

  // The place of the next value.
  Json& next() {
    if (open_.size() > static_cast<size_t>(kJsonDepth))
      throw RequestError(400, "",
                         fmt::format("the body is nested more than {} levels deep", kJsonDepth));
    if (++values_ > kJsonValues)
      throw RequestError(
          400, "",
          fmt::format("the body has too many values; at most {} are allowed", kJsonValues));
    if (open_.empty()) return root_;
    Json& parent = *open_.back().value;
    if (parent.is_object()) return *member_;
    return parent.emplace_back(nullptr);
  }
  template <typename Value>
  bool add(Value&& value) {
    next() = Json(std::forward<Value>(value));
    return true;
  }
  bool open(Json::value_t type) {
    Json& value = next();
    value = Json(type);
    open_.push_back({.value = &value});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Open> open_;  // outermost first
  Json* member_ = nullptr;  // the value of the key just read
  int64_t comparisons_ = 0;
  int values_ = 0;
};

}  // namespace

Json parse_object(std::string_view body) {
  BoundedBuilder builder;
  Json::sax_parse(body, &builder);
  Json json = builder.take();
  if (!json.is_object()) throw RequestError(400, "", "the body must be a JSON object");
  return json;
}

void append_json_string(std::string& out, std::string_view text) {
  if (is_valid_utf8(text)) {
    append_json_quoted(out, text);
  } else {
    append_json_quoted(out, replace_invalid_utf8(text));
  }
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

void append_json_number(std::string& out, float value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string_view number(digits.data(), end.ptr);
  out += number;
  if (number.find_first_of(".e") == std::string_view::npos) out += ".0";
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octavo::api

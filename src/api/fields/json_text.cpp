#include "api/fields/json_text.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/json_quote.h"
#include "text/utf8.h"

namespace octavo::api {

namespace {

// Enforces the bounds while a body is parsed.
class Bounds {
 public:
  void see(int depth, Json::parse_event_t event) {
    if (depth > kJsonDepth)
      throw RequestError(400, "",
                         fmt::format("the body is nested more than {} levels deep", kJsonDepth));
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      keys_[level + 1] = 0;
    } else if (event == Json::parse_event_t::key) {
      comparisons_ += keys_[level]++;
      if (keys_[level] > kJsonKeys || comparisons_ > kJsonKeyComparisons)
        throw RequestError(
            400, "",
            fmt::format("the body has too many keys; an object may have at most {}", kJsonKeys));
    }
  }

 private:
  std::array<int, kJsonDepth + 2> keys_ = {};  // of the open object, by depth
  int64_t comparisons_ = 0;
};

}  // namespace

Json parse_object(std::string_view body) {
  Bounds bounds;
  const auto bounded = [&](int depth, Json::parse_event_t event, Json&) {
    bounds.see(depth, event);
    return true;
  };
  Json json;
  try {
    json = Json::parse(body, bounded);
  } catch (const Json::exception& error) {
    // The parser's message quotes its input, which may be long.
    const std::string_view reason = error.what();
    throw RequestError(400, "",
                       fmt::format("the body is not valid JSON: {}", reason.substr(0, 200)));
  }
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

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octavo::api

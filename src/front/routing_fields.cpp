#include "front/routing_fields.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "api/fields/body_fields.h"
#include "api/fields/json_text.h"
#include "base/error.h"

namespace octavo::front {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void refuse_body() {
  throw RequestError(400, "", "the body is not a valid JSON object");
}

// Reads the members of an object one after another.
class MemberScanner {
 public:
  explicit MemberScanner(std::string_view text) : text_(text) {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    skip_space();
    if (next() != '{') refuse_body();
    skip_space();
  }

  // Whether there is another member. At the end, checks that nothing follows the object.
  bool more() {
    if (peek() == '}') {
      end_ = at_++;
      skip_space();
      if (at_ != text_.size()) refuse_body();
      return false;
    }
    if (any_) {
      if (next() != ',') refuse_body();
      skip_space();
    }
    any_ = true;
    // The child has the same limit. Without it here, decoding millions of keys would hold up all
    // other clients.
    if (++members_ > api::kJsonKeys)
      throw RequestError(
          400, "",
          fmt::format("the body has too many keys; an object may have at most {}", api::kJsonKeys));
    return true;
  }
  // The key with its quotes; then value() is the next.
  std::string_view key() {
    const std::string_view key = string();
    skip_space();
    if (next() != ':') refuse_body();
    skip_space();
    return key;
  }
  std::string_view value() {
    const size_t begin = at_;
    const char first = peek();
    if (first == '"') {
      string();
    } else if (first == '{' || first == '[') {
      nested();
    } else {
      scalar();
    }
    const std::string_view value = text_.substr(begin, at_ - begin);
    skip_space();
    return value;
  }
  size_t end() const { return end_; }  // of the closing brace

 private:
  char peek() const {
    if (at_ == text_.size()) refuse_body();
    return text_[at_];
  }
  char next() {
    const char c = peek();
    ++at_;
    return c;
  }
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != 0)
      ++at_;
  }
  std::string_view string() {
    const size_t begin = at_;
    if (next() != '"') refuse_body();
    while (true) {
      at_ = text_.find('"', at_);
      if (at_ == std::string_view::npos) refuse_body();
      size_t escapes = 0;
      while (text_[at_ - 1 - escapes] == '\\') ++escapes;
      ++at_;
      if (escapes % 2 == 0) return text_.substr(begin, at_ - begin);
    }
  }
  void scalar() {
    const size_t begin = at_;
    while (std::strchr(",}] \t\r\n", peek()) == nullptr) ++at_;
    if (at_ == begin) refuse_body();
  }
  void nested() {
    std::string open;  // brackets
    do {
      switch (peek()) {
        case '"':
          string();
          continue;
        case '{':
        case '[':
          open += text_[at_];
          if (open.size() > static_cast<size_t>(api::kJsonDepth)) refuse_body();
          break;
        case '}':
        case ']':
          if (open.back() != (text_[at_] == '}' ? '{' : '[')) refuse_body();
          open.pop_back();
          break;
        default:
          break;
      }
      ++at_;
    } while (!open.empty());
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t end_ = 0;
  bool any_ = false;
  int members_ = 0;
};

bool is_key(std::string_view quoted, std::string_view name) {
  if (quoted.find('\\') == std::string_view::npos)
    return quoted.substr(1, quoted.size() - 2) == name;
  const api::Json decoded = api::Json::parse(quoted, nullptr, false);
  return decoded.is_string() && decoded.get_ref<const std::string&>() == name;
}

std::string model_of(std::string_view value) {
  if (value == "null") return {};
  const api::Json model =
      value.starts_with('"') ? api::Json::parse(value, nullptr, false) : api::Json();
  if (!model.is_string()) throw RequestError(400, "model", "must be a string");
  const auto& name = model.get_ref<const std::string&>();
  if (name.size() > api::kMaxNameBytes)
    throw RequestError(400, "model", fmt::format("is longer than {} bytes", api::kMaxNameBytes));
  return name;
}

std::optional<KeepAlive> keep_alive_of(std::string_view value) {
  if (value == "null") return std::nullopt;
  const bool quoted = value.size() > 2 && value.starts_with('"');
  const auto time = parse_keep_alive(quoted ? value.substr(1, value.size() - 2) : value);
  if (!time)
    throw RequestError(400, "keep_alive",
                       "must be seconds or a duration such as \"5m\"; -1 keeps "
                       "the model loaded, 0 unloads it");
  return time;
}

}  // namespace

RoutingFields routing_fields(std::string_view body) {
  RoutingFields fields;
  std::string_view model;
  std::string_view keep_alive;
  MemberScanner scanner(body);
  while (scanner.more()) {
    const std::string_view key = scanner.key();
    const std::string_view value = scanner.value();
    fields.has_members = true;
    if (is_key(key, "model")) {
      model = value;
    } else if (is_key(key, "keep_alive")) {
      keep_alive = value;
    }
  }
  fields.end = scanner.end();
  if (!model.empty()) {
    fields.model = model_of(model);
    fields.model_begin = static_cast<size_t>(model.data() - body.data());
    fields.model_end = fields.model_begin + model.size();
  }
  if (!keep_alive.empty()) fields.keep_alive = keep_alive_of(keep_alive);
  return fields;
}

std::string with_model(std::string_view body, const RoutingFields& fields, std::string_view model) {
  std::string changed(body.substr(0, fields.model_begin));
  api::append_json_string(changed, model);
  changed += body.substr(fields.model_end);
  return changed;
}

}  // namespace octavo::front

#include "bench/load/server_error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace octavo::bench {
namespace {

constexpr size_t kMaxChars = 200;  // the rest of an error page is not useful

std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  const size_t last = text.find_last_not_of(' ');
  text.resize(last == std::string::npos ? 0 : last + 1);
  if (text.size() > kMaxChars) text = text.substr(0, kMaxChars) + "...";
  return text;
}

std::string text_of(const nlohmann::json& value) {
  return one_line(value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

std::string error_sentence(const nlohmann::json& answer) {
  if (!answer.is_object()) return {};
  if (const auto error = answer.find("error"); error != answer.end() && !error->is_null()) {
    if (error->is_object() && error->contains("message")) return text_of(error->at("message"));
    return text_of(*error);
  }
  for (const char* name : {"message", "detail"})
    if (answer.contains(name)) return text_of(answer.at(name));
  return {};
}

std::string error_text(std::string_view body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  std::string sentence = error_sentence(json);
  return sentence.empty() ? one_line(std::string(body)) : sentence;
}

}  // namespace octavo::bench

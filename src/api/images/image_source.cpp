#include "api/images/image_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "api/fields/field_kinds.h"
#include "api/images/image_settings.h"
#include "base/base64.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxUrlBytes = 8192;          // of a URL that is fetched
constexpr size_t kMaxBase64Bytes = 64u << 20;  // the server's limit of a body is lower
constexpr std::array<std::string_view, 4> kDetails = {"auto", "low", "high", "original"};

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower;
}

const std::string& text_of(const Json& value, const std::string& field) {
  if (!value.is_string()) refuse(field, fmt::format("must be a string, not {}", shown(value)));
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty()) refuse(field, "is empty");
  if (text.size() > kMaxBase64Bytes)
    refuse(field,
           fmt::format("has {} bytes; at most {} are allowed", text.size(), kMaxBase64Bytes));
  return text;
}

ImageSource decoded(std::string_view base64, const std::string& field) {
  auto bytes = from_base64(base64);
  if (!bytes)
    refuse(field, "is not valid base64: the standard alphabet, with padding and without spaces");
  if (bytes->empty()) refuse(field, "is empty");
  return {.field = field, .file = std::make_shared<const std::string>(std::move(*bytes))};
}

ImageSource in_data_url(std::string_view url, const std::string& field) {
  const size_t comma = url.find(',');
  constexpr std::string_view kForm = "must be written as data:image/png;base64,...";
  if (comma == std::string_view::npos) refuse(field, std::string(kForm));
  constexpr size_t kMaxHead = 256;
  if (comma > kMaxHead) refuse(field, std::string(kForm));
  const std::string head = in_lower_case(url.substr(0, comma));  // "data:image/png;base64"
  const std::string_view type = std::string_view(head).substr(std::string_view("data:").size());
  if (!type.ends_with(";base64")) refuse(field, std::string(kForm));
  if (!type.starts_with("image/") && !type.starts_with(';'))
    refuse(field, "is not an image; write data:image/png;base64,...");
  return decoded(url.substr(comma + 1), field);
}

}  // namespace

ImageSource image_at_url(const Json& url, const std::string& field) {
  const std::string& text = text_of(url, field);
  const std::string start = in_lower_case(std::string_view(text).substr(0, 8));
  if (start.starts_with("data:")) return in_data_url(text, field);
  if (!start.starts_with("https:") && !start.starts_with("http:"))
    refuse(field,
           "must be a data: URL with base64, or an https: URL; files of the server are not read");
  if (text.size() > kMaxUrlBytes)
    refuse(field,
           fmt::format("has {} bytes; a URL may have at most {}", text.size(), kMaxUrlBytes));
  return {.field = field, .url = text};
}

void add_image(std::vector<ImageSource>& images, ImageSource image) {
  if (images.size() >= static_cast<size_t>(kMostImages))
    refuse(image.field, fmt::format("the request has more than {} images", kMostImages));
  images.push_back(std::move(image));
}

ImageSource image_in_base64(const Json& text, const std::string& field) {
  return decoded(text_of(text, field), field);
}

bool is_low_detail(const Json& value, const std::string& field) {
  if (value.is_null()) return false;
  if (!value.is_string() ||
      std::ranges::count(kDetails, std::string_view(value.get_ref<const std::string&>())) == 0)
    refuse(field, "must be auto, low, high or original, not " + shown(value));
  return value == "low";
}

Json translated_image(size_t index) { return {{"type", kTranslatedImage}, {"index", index}}; }

Json image_url_schema() { return filled_string_schema(kMaxBase64Bytes); }

Json detail_schema() {
  return {{"type", {"string", "null"}}, {"enum", {"auto", "low", "high", "original", nullptr}}};
}

}  // namespace octavo::api

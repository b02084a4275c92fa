#include "llm/image_limits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/images/image_settings.h"
#include "base/error.h"

namespace octavo {
namespace {

const char* const kLimitForm = R"(--limit-mm-per-prompt: write a JSON object such as {"image": 4})";

int count_of(const std::string& kind, const nlohmann::json& value) {
  const nlohmann::json& count =
      value.is_object() && value.contains("count") ? value.at("count") : value;
  if (!count.is_number_integer() || count < 0 || count > api::kMostImages)
    throw SetupError(fmt::format("--limit-mm-per-prompt: {} must be a whole number from 0 to {}",
                                 kind, api::kMostImages));
  return count.get<int>();
}

}  // namespace

int parse_image_limit(const std::string& json) {
  const auto limits = nlohmann::json::parse(json, nullptr, false);
  if (!limits.is_object()) throw SetupError(kLimitForm);
  int images = api::kMaxImages;
  for (const auto& [kind, value] : limits.items()) {
    if (kind == "image") {
      images = count_of(kind, value);
    } else if (kind != "video" && kind != "audio") {
      throw SetupError(fmt::format("--limit-mm-per-prompt: `{}` is not a kind of input; {}", kind,
                                   "image, video and audio are"));
    } else if (count_of(kind, value) > 0) {
      throw SetupError(
          fmt::format("--limit-mm-per-prompt: {} is not supported; leave it out or "
                      "write 0",
                      kind));
    }
  }
  return images;
}

std::string checked_processor_kwargs(const std::string& json) {
  if (json.empty()) return json;
  const auto settings = nlohmann::json::parse(json, nullptr, false);
  if (!settings.is_object())
    throw SetupError(
        R"(--mm-processor-kwargs: write a JSON object such as {"max_pixels": 1003520})");
  return settings.empty() ? "" : json;
}

}  // namespace octavo

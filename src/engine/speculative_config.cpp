#include "engine/speculative_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr const char* kFlag = "--speculative-config";
constexpr int kMostTokens = 32;
constexpr int kLongestNgram = 16;

[[noreturn]] void fail(const std::string& key, const std::string& what) {
  throw SetupError(fmt::format("{}: {}: {}", kFlag, key, what));
}

int number(const std::string& key, const Json& value, int most) {
  if (value.is_number_integer() && value.get<int64_t>() >= 1 && value.get<int64_t>() <= most)
    return value.get<int>();
  fail(key, fmt::format("must be a number from 1 to {}", most));
}

std::string words(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  fail(key, "must be a string");
}

SpeculativeMethod method_of(const std::string& name) {
  if (name == "none") return SpeculativeMethod::kNone;
  if (name == "ngram") return SpeculativeMethod::kNgram;
  if (name == "draft_model") return SpeculativeMethod::kDraftModel;
  if (name == "mtp") return SpeculativeMethod::kMtp;
  fail("method",
       fmt::format(R"("{}" is not supported; use "ngram", "draft_model", "mtp" or "none")", name));
}

}  // namespace

SpeculativeConfig parse_speculative_config(std::string_view json) {
  const Json given = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) {
    throw SetupError(fmt::format(
        R"({}: must be a JSON object, like {{"method": "ngram", "num_speculative_tokens": 5}})",
        kFlag));
  }
  SpeculativeConfig config{.asked = true};
  if (given.contains("model")) config.method = SpeculativeMethod::kDraftModel;
  bool has_min = false;
  bool has_tokens = false;
  for (const auto& [key, value] : given.items()) {
    if (key == "method") {
      config.method = method_of(words(key, value));
    } else if (key == "model") {
      config.model = words(key, value);
    } else if (key == "num_speculative_tokens") {
      config.num_speculative_tokens = number(key, value, kMostTokens);
      has_tokens = true;
    } else if (key == "prompt_lookup_max") {
      config.prompt_lookup_max = number(key, value, kLongestNgram);
    } else if (key == "prompt_lookup_min") {
      config.prompt_lookup_min = number(key, value, kLongestNgram);
      has_min = true;
    } else {
      fail(key,
           "unknown key; supported keys are method, model, num_speculative_tokens, "
           "prompt_lookup_max and prompt_lookup_min");
    }
  }
  if (!has_min)
    config.prompt_lookup_min = std::min(config.prompt_lookup_min, config.prompt_lookup_max);
  if (config.prompt_lookup_min > config.prompt_lookup_max)
    fail("prompt_lookup_min", "must not be above prompt_lookup_max");
  if (config.method == SpeculativeMethod::kMtp) {
    if (!has_tokens) config.num_speculative_tokens = 1;
    if (config.num_speculative_tokens != 1)
      fail("num_speculative_tokens", "must be 1 with the method mtp, which predicts one token");
  }
  const bool drafts = config.method == SpeculativeMethod::kDraftModel;
  if (drafts && config.model.empty()) fail("model", "must name the draft model's file or folder");
  if (!drafts && !config.model.empty())
    fail("model", "is only supported with the method draft_model");
  return config;
}

std::string SpeculativeConfig::text() const {
  switch (method) {
    case SpeculativeMethod::kNone:
      return "off";
    case SpeculativeMethod::kNgram:
      return fmt::format("prompt lookup of {} to {} tokens, up to {} ahead", prompt_lookup_min,
                         prompt_lookup_max, num_speculative_tokens);
    case SpeculativeMethod::kDraftModel:
      return fmt::format("draft model {}, up to {} ahead", model, num_speculative_tokens);
    case SpeculativeMethod::kMtp:
      return "the model's multi-token prediction layer, 1 ahead";
  }
  return "?";
}

}  // namespace octavo

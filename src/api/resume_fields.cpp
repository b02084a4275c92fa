#include "api/resume_fields.h"

#include <fmt/format.h>

#include <limits>

#include "api/fields/field_kinds.h"

namespace octavo::api {
namespace {

// Prompts of a request times its choices.
constexpr size_t kMaxLists = 1024 * 64;
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinInt64 = std::numeric_limits<int64_t>::min();

std::vector<std::vector<TokenId>> token_lists(const Json& value, const std::string& field) {
  if (!value.is_array()) refuse(field, "must be a list of lists of token ids");
  if (value.size() > kMaxLists)
    refuse(field, fmt::format("has {} lists; at most {} are allowed", value.size(), kMaxLists));
  std::vector<std::vector<TokenId>> lists;
  for (const Json& list : value) lists.push_back(to_tokens(list, field));
  return lists;
}

Json lists_schema() {
  return {{"type", "array"}, {"items", tokens_schema()}, {"maxItems", kMaxLists}};
}

}  // namespace

std::vector<std::vector<TokenId>> read_resume_tokens(const Json& value) {
  return token_lists(value, "resume_token_ids");
}

ResumeFacts read_resume(const Json& value) {
  if (!value.is_object()) refuse("resume", "must be an object");
  ResumeFacts facts;
  for (const auto& [name, fact] : value.items()) {
    const std::string field = "resume." + name;
    if (name == "id") {
      facts.id = to_string(fact, field, kMaxNameBytes);
    } else if (name == "created") {
      facts.created = to_integer(fact, field, 0, kMaxInt64);
    } else if (name == "seed") {
      facts.seed = to_integer(fact, field, kMinInt64, kMaxInt64);
    } else if (name == "system_fingerprint") {
      facts.fingerprint = to_string(fact, field, kMaxNameBytes);
    } else if (name == "prompt_token_ids") {
      facts.prompts = token_lists(fact, field);
    } else if (name == "cached_tokens") {
      facts.cached_tokens = to_int(fact, field, 0, kMaxInt);
    } else {
      refuse(field, "is not a known member");
    }
  }
  return facts;
}

Json resume_tokens_schema() { return lists_schema(); }

Json resume_schema() {
  return {{"type", "object"},
          {"properties",
           {{"id", string_schema(kMaxNameBytes)},
            {"created", integer_schema(0, kMaxInt64)},
            {"seed", integer_schema(kMinInt64, kMaxInt64)},
            {"system_fingerprint", string_schema(kMaxNameBytes)},
            {"prompt_token_ids", lists_schema()},
            {"cached_tokens", integer_schema(0, kMaxInt)}}},
          {"additionalProperties", false}};
}

}  // namespace octavo::api

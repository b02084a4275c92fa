#include "bench/load/sharegpt.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/error.h"

namespace octavo::bench {
namespace {

using Json = nlohmann::json;

constexpr int kLeastTokens = 4;
constexpr int kMostPromptTokens = 1024;
constexpr int kMostTokens = 2048;

std::optional<Conversation> conversation_of(const Json& entry) {
  std::optional<std::string> prompt;
  for (const Json& turn : entry.at("conversations")) {
    const auto from = turn.at("from").get<std::string>();
    if (!prompt) {
      if (from == "human" || from == "user") prompt = turn.at("value").get<std::string>();
    } else if (from == "gpt" || from == "chatgpt" || from == "assistant") {
      return Conversation{.prompt = *prompt, .answer = turn.at("value").get<std::string>()};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Conversation> read_sharegpt(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw SetupError(fmt::format("{}: cannot be read", path.string()));
  std::vector<Conversation> conversations;
  // The usual file has 600 MB, so each entry is discarded after its two turns are extracted.
  const auto take = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 1 || event != Json::parse_event_t::object_end) return true;
    if (auto conversation = conversation_of(parsed))
      conversations.push_back(std::move(*conversation));
    return false;
  };
  try {
    if (!Json::parse(file, take).is_array()) throw SetupError("not a list");
  } catch (const std::exception& error) {
    throw SetupError(
        fmt::format("{}: {}; expected [{{\"conversations\": [{{\"from\": \"human\", "
                    "\"value\": \"...\"}}, ...]}}, ...]",
                    path.string(), error.what()));
  }
  return conversations;
}

std::vector<LoadRequest> sharegpt_requests(std::vector<Conversation> conversations, size_t count,
                                           uint64_t seed, const CountTokens& count_tokens) {
  // The generator is portable; std::shuffle is not.
  std::mt19937_64 random(seed);
  for (size_t left = conversations.size(); left > 1; --left)
    std::swap(conversations[left - 1], conversations[random() % left]);
  std::vector<LoadRequest> requests;
  for (Conversation& conversation : conversations) {
    if (requests.size() == count) break;
    const int prompt = count_tokens(conversation.prompt);
    if (prompt < kLeastTokens || prompt > kMostPromptTokens) continue;
    const int answer = count_tokens(conversation.answer);
    if (answer < kLeastTokens || prompt + answer > kMostTokens) continue;
    requests.push_back(
        {.prompt = std::move(conversation.prompt), .prompt_tokens = prompt, .max_tokens = answer});
  }
  return requests;
}

}  // namespace octavo::bench

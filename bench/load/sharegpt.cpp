#include "bench/load/sharegpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "bench/load/python_random.h"

namespace octavo::bench {
namespace {

using Json = nlohmann::json;

constexpr int kLeastTokens = 4;
constexpr int kMostPromptTokens = 1024;
constexpr int kMostTokens = 2048;

const Json* turns_of(const Json& entry) {
  const auto found = entry.find("conversations");
  return found == entry.end() ? nullptr : &*found;
}

// The usual file has 600 MB, so each entry is discarded after `take` has seen it.
void read_entries(const std::filesystem::path& path, const std::function<void(const Json&)>& take) {
  std::ifstream file(path);
  if (!file) throw SetupError(fmt::format("{}: cannot be read", path.string()));
  const auto read = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 1 || event != Json::parse_event_t::object_end) return true;
    if (const Json* turns = turns_of(parsed)) take(*turns);
    return false;
  };
  try {
    if (!Json::parse(file, read).is_array()) throw SetupError("not a list");
  } catch (const std::exception& error) {
    throw SetupError(
        fmt::format("{}: {}; expected [{{\"conversations\": [{{\"from\": \"human\", "
                    "\"value\": \"...\"}}, ...]}}, ...]",
                    path.string(), error.what()));
  }
}

std::string stripped(const std::string& text) {
  constexpr const char* kSpace = " \t\n\r\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::string> first_human_turn(const Json& turns) {
  for (const Json& turn : turns) {
    if (turn.at("from").get<std::string>() != "human") continue;
    std::string text = stripped(turn.at("value").get<std::string>());
    if (!text.empty()) return text;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Conversation> read_sharegpt(const std::filesystem::path& path) {
  std::vector<Conversation> conversations;
  read_entries(path, [&](const Json& turns) {
    if (turns.size() < 2) return;
    conversations.push_back({.prompt = turns.at(0).at("value").get<std::string>(),
                             .answer = turns.at(1).at("value").get<std::string>()});
  });
  return conversations;
}

std::vector<std::string> sharegpt_prompts(const std::filesystem::path& path, size_t count,
                                          uint64_t seed) {
  std::vector<std::string> prompts;
  read_entries(path, [&](const Json& turns) {
    if (auto prompt = first_human_turn(turns)) prompts.push_back(std::move(*prompt));
  });
  PythonRandom(seed).shuffle(prompts);
  prompts.resize(std::min(count, prompts.size()));
  return prompts;
}

std::vector<LoadRequest> sharegpt_requests(std::vector<Conversation> conversations,
                                           const ShareGptOptions& options,
                                           const CountTokens& count_tokens) {
  PythonRandom(options.seed).shuffle(conversations);
  const bool is_fixed = options.output_tokens > 0;
  std::vector<LoadRequest> requests;
  for (Conversation& conversation : conversations) {
    if (requests.size() == options.count) break;
    const int prompt = count_tokens(conversation.prompt);
    if (prompt < kLeastTokens || prompt > kMostPromptTokens) continue;
    const int answer = is_fixed ? options.output_tokens : count_tokens(conversation.answer);
    if ((!is_fixed && answer < kLeastTokens) || prompt + answer > kMostTokens) continue;
    // Assigned in place: GCC 12 warns about the moved-from variant of a temporary.
    LoadRequest& request = requests.emplace_back();
    request.prompt = std::move(conversation.prompt);
    request.prompt_tokens = prompt;
    request.max_tokens = answer;
  }
  return requests;
}

}  // namespace octavo::bench

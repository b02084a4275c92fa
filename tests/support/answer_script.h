// answer_script.h - answers written in a file instead of drawn by a model. Any thread. No MLX.
//
// The file is a JSON list of rules. The first rule that fits a prompt answers it:
//   "contains": texts that the prompt must contain
//   "lacks":    texts that it must not contain
//   "turn":     a text; its occurrences in the prompt are the index of the answer
//   "answers":  the model's output, tool calls in its dialect included; the last one repeats
#pragma once

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

class AnswerScript {
 public:
  explicit AnswerScript(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw SetupError(path + ": cannot be read");
    for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
      Rule rule{.contains = entry.value("contains", std::vector<std::string>{}),
                .lacks = entry.value("lacks", std::vector<std::string>{}),
                .turn = entry.value("turn", std::string{}),
                .answers = entry.at("answers").get<std::vector<std::string>>()};
      if (rule.answers.empty()) throw SetupError(path + ": a rule has no answers");
      rules_.push_back(std::move(rule));
    }
  }

  // Null if no rule fits.
  const std::string* answer_for(std::string_view prompt) const {
    const auto is_in = [&](const std::string& text) {
      return prompt.find(text) != std::string_view::npos;
    };
    for (const Rule& rule : rules_) {
      if (!std::ranges::all_of(rule.contains, is_in) || std::ranges::any_of(rule.lacks, is_in))
        continue;
      return &rule.answers[std::min(count(prompt, rule.turn), rule.answers.size() - 1)];
    }
    return nullptr;
  }

 private:
  struct Rule {
    std::vector<std::string> contains;
    std::vector<std::string> lacks;
    std::string turn;
    std::vector<std::string> answers;
  };

  static size_t count(std::string_view prompt, const std::string& text) {
    size_t found = 0;
    if (text.empty()) return found;
    for (size_t at = prompt.find(text); at != std::string_view::npos;
         at = prompt.find(text, at + text.size()))
      ++found;
    return found;
  }

  std::vector<Rule> rules_;
};

}  // namespace octavo

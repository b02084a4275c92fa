#include "front/merged_metrics.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace octavo::front {
namespace {

struct Family {
  std::string head = {};  // the lines HELP and TYPE
  std::string samples = {};
};

std::string_view take_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

// "name{a="b"} 1" or "name 1"
std::string labelled(std::string_view sample, const std::string& model) {
  if (model.empty() || sample.find("model_name=\"") != std::string_view::npos)
    return std::string(sample);
  const std::string label = "model_name=\"" + escaped(model) + "\"";
  const size_t at = sample.find_first_of("{ ");
  if (at == std::string_view::npos) return std::string(sample);
  std::string text(sample.substr(0, at));
  if (sample[at] == ' ') return text + "{" + label + "}" + std::string(sample.substr(at));
  const std::string_view rest = sample.substr(at + 1);
  return text + "{" + label + (rest.starts_with('}') ? "" : ",") + std::string(rest);
}

class Merger {
 public:
  void add(const MetricsPage& page) {
    Family* family = &family_of("");
    std::string_view text = page.text;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.empty()) continue;
      if (!line.starts_with('#')) {
        family->samples += labelled(line, page.model) + "\n";
        continue;
      }
      std::string_view words = line.substr(1);
      if (words.starts_with(' ')) words.remove_prefix(1);
      const std::string kind(take_word(words));
      if (kind != "HELP" && kind != "TYPE") continue;
      family = &family_of(std::string(take_word(words)));
      if (family->head.find("# " + kind + " ") == std::string::npos)
        family->head += std::string(line) + "\n";
    }
  }

  std::string text() const {
    std::string text;
    for (const std::string& name : order_) {
      const Family& family = families_.at(name);
      text += family.head + family.samples;
    }
    return text;
  }

 private:
  Family& family_of(const std::string& name) {
    const auto [entry, added] = families_.try_emplace(name);
    if (added) order_.push_back(name);
    return entry->second;
  }

  std::vector<std::string> order_;
  std::unordered_map<std::string, Family> families_;
};

}  // namespace

std::string merged_metrics(const std::vector<MetricsPage>& pages) {
  Merger merger;
  for (const MetricsPage& page : pages) merger.add(page);
  return merger.text();
}

}  // namespace octavo::front

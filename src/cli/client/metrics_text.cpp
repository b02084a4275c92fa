#include "cli/client/metrics_text.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace octavo {
namespace {

// Takes a quoted label value from the front of `text`. Nothing if it does not end.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size()) {
      ++i;
      value += text[i] == 'n' ? '\n' : text[i];
    } else {
      value += text[i];
    }
  }
  return std::nullopt;
}

// Takes `{a="b",c="d"}` from the front of `text` and notes the model. False if it is malformed.
bool take_labels(std::string_view& text, std::string& model) {
  text.remove_prefix(1);
  while (!text.empty() && text.front() != '}') {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view label = text.substr(0, equals);
    text.remove_prefix(equals + 1);
    if (!text.starts_with('"')) return false;
    const std::optional<std::string> value = take_quoted(text);
    if (!value) return false;
    if (label == "model_name") model = *value;
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  if (text.empty()) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<MetricSample> read_sample(std::string_view line) {
  const size_t end = line.find_first_of("{ ");
  if (line.starts_with('#') || end == 0 || end == std::string_view::npos) return std::nullopt;
  MetricSample sample{.name = std::string(line.substr(0, end))};
  line.remove_prefix(end);
  if (line.starts_with('{') && !take_labels(line, sample.model)) return std::nullopt;
  const std::string number(line);
  char* after = nullptr;
  sample.value = std::strtod(number.c_str(), &after);
  if (after == number.c_str()) return std::nullopt;
  return sample;
}

}  // namespace

std::vector<MetricSample> read_metrics(std::string_view text) {
  std::vector<MetricSample> samples;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto sample = read_sample(text.substr(0, end))) samples.push_back(std::move(*sample));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return samples;
}

double sum_of(const std::vector<MetricSample>& samples, std::string_view name,
              std::string_view model) {
  double sum = 0;
  for (const MetricSample& sample : samples)
    if (sample.name == name && sample.model == model) sum += sample.value;
  return sum;
}

}  // namespace octavo

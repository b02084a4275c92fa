#include "front/stream_parts.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/fields/json_text.h"
#include "base/error.h"
#include "server/front_notes.h"

namespace octavo::front {
namespace {

[[noreturn]] void refuse_note() {
  throw RequestError(500, "", "internal error: the model's process sent an invalid note");
}

int32_t take_id(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  int32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number < 0) refuse_note();
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return number;
}

}  // namespace

void AnswerSoFar::read_note(std::string_view line) {
  if (line.starts_with(server::kStartNote)) {
    const api::Json start =
        api::Json::parse(line.substr(server::kStartNote.size()), nullptr, false);
    if (!start.is_object() || !start.contains("resume") || !start.contains("resume_token_ids"))
      refuse_note();
    resume_ = api::dump(start["resume"]);
    tokens_ = start["resume_token_ids"].get<std::vector<std::vector<int32_t>>>();
    return;
  }
  if (!line.starts_with(server::kTokenNote)) refuse_note();
  line.remove_prefix(server::kTokenNote.size());
  const auto choice = static_cast<size_t>(take_id(line));
  if (choice >= tokens_.size()) refuse_note();
  while (!line.empty()) tokens_[choice].push_back(take_id(line));
}

std::string AnswerSoFar::members() const {
  std::string text = "\"resume\":" + resume_ + ",\"resume_token_ids\":[";
  for (size_t i = 0; i < tokens_.size(); ++i) {
    text += i == 0 ? "[" : ",[";
    for (size_t k = 0; k < tokens_[i].size(); ++k) {
      if (k > 0) text += ',';
      text += std::to_string(tokens_[i][k]);
    }
    text += ']';
  }
  return text + "]";
}

void StreamParts::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      line_ += bytes;
      return;
    }
    if (line_.empty()) {
      end_line(bytes.substr(0, end));
    } else {
      line_ += bytes.substr(0, end);
      end_line(line_);
      line_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void StreamParts::end_line(std::string_view line) {
  if (std::exchange(after_note_, false) && line.empty()) return;
  if (!line.starts_with(':')) {
    part_ += line;
    part_ += '\n';
    return;
  }
  after_note_ = true;
  const bool tokens = line.starts_with(server::kTokenNote);
  if (!tokens && !line.starts_with(server::kStartNote)) return;  // to keep the connection alive
  answer_.read_note(line);
  if (!tokens) return;  // the tokens of the first part follow
  whole_ += part_;
  part_.clear();
}

std::string StreamParts::take() { return std::exchange(whole_, {}); }

std::string StreamParts::take_last() {
  return std::exchange(whole_, {}) + std::exchange(part_, {}) + std::exchange(line_, {});
}

}  // namespace octavo::front

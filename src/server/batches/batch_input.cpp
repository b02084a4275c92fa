#include "server/batches/batch_input.h"

#include <fmt/format.h>

#include "api/fields/json_values.h"
#include "base/error.h"

namespace octavo::server {

using namespace api;

namespace {

constexpr size_t kMostErrors = 100;
constexpr size_t kMostCustomIdBytes = 512;

const Json& member(const Json& object, const char* name) {
  if (!object.contains(name)) refuse(name, "is missing");
  return object[name];
}

// Throws RequestError.
state::BatchLine line_of(std::string_view text, const std::string& endpoint) {
  const Json line = parse_object(text);
  std::string custom_id = to_string(member(line, "custom_id"), "custom_id", kMostCustomIdBytes);
  if (custom_id.empty()) refuse("custom_id", "is empty");
  if (member(line, "method") != "POST") refuse("method", "must be POST");
  if (member(line, "url") != endpoint)
    refuse("url", fmt::format("must be the batch's endpoint {}", endpoint));
  const Json& body = member(line, "body");
  if (!body.is_object()) refuse("body", "must be an object");
  if (body.contains("stream") && body["stream"] != false && !body["stream"].is_null())
    refuse("body.stream", "a batch cannot stream; leave it out");
  return {.custom_id = std::move(custom_id), .request = dump(body)};
}

}  // namespace

void BatchInput::add_error(const char* code, const std::string& message, const std::string& param) {
  if (errors_.size() >= kMostErrors) return;
  errors_.push_back({{"code", code},
                     {"line", number_},
                     {"message", message},
                     {"param", param.empty() ? Json(nullptr) : Json(param)}});
}

void BatchInput::add_line(state::BatchTable& batches, std::string_view text) {
  ++number_;
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  if (text.find_first_not_of(" \t") == std::string_view::npos) return;
  if (text.size() > limits_.line_bytes) {
    add_error("line_too_long", fmt::format("the line has more than {} bytes", limits_.line_bytes));
    return;
  }
  if (++lines_ > limits_.lines) {
    if (lines_ == limits_.lines + 1)
      add_error("too_many_lines", fmt::format("a batch has at most {} lines", limits_.lines));
    return;
  }
  try {
    state::BatchLine line = line_of(text, batch_.endpoint);
    line.line = number_;
    if (!batches.add_line(batch_.key, line))
      add_error("duplicate_custom_id",
                fmt::format("another line has the custom_id {}", line.custom_id), "custom_id");
  } catch (const RequestError& error) {
    add_error("invalid_line", error.what(), error.param());
  }
}

bool BatchInput::read_more(const state::Database& database) {
  if (ended_) return false;
  state::BatchTable batches(database);
  state::Transaction transaction(database.connection());
  if (chunks_ == 0) batches.drop_lines(batch_.key);  // of a validation that was interrupted
  const auto chunk = state::FileTable(database).chunk(file_.key, chunks_++);
  ended_ = !chunk.has_value();
  if (chunk) {
    rest_ += *chunk;
    bytes_ += static_cast<int64_t>(chunk->size());
  }
  size_t start = 0;
  for (size_t end = 0; (end = rest_.find('\n', start)) != std::string::npos; start = end + 1)
    add_line(batches, std::string_view(rest_).substr(start, end - start));
  rest_.erase(0, start);
  // One byte more than allowed is enough to refuse the line.
  const bool too_long = rest_.size() > limits_.line_bytes + 1;
  // A part of the lines must not run as if they were all.
  if (ended_ && bytes_ < file_.bytes)
    add_error("invalid_file", "the input file was deleted", "input_file_id");
  if (ended_ || too_long) {
    if (!rest_.empty()) add_line(batches, rest_);
    ended_ = true;
    rest_.clear();
    number_ = 0;
    if (lines_ == 0 && errors_.empty()) add_error("empty_file", "the input file has no lines");
  }
  transaction.commit();
  return !ended_;
}

std::string BatchInput::errors() const {
  if (errors_.empty()) return {};
  return dump({{"object", "list"}, {"data", errors_}});
}

}  // namespace octavo::server

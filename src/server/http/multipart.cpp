#include "server/http/multipart.h"

#include <algorithm>

#include "base/error.h"
#include "server/http/http.h"

namespace octavo::server {
namespace {

constexpr size_t kMostPartHeaderBytes = 8u << 10;
constexpr int kMostParts = 16;
constexpr size_t kLongestBoundary = 70;  // RFC 2046

[[noreturn]] void refuse_form(const char* message) { throw RequestError(400, "", message); }

// The value of `name` in "form-data; name=\"file\"; filename=a.jsonl", with \" and \\ decoded.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  size_t at = header.find(';');
  while (at != std::string_view::npos) {
    const size_t equals = header.find('=', ++at);
    if (equals == std::string_view::npos) return std::nullopt;
    const bool wanted = equal_ignoring_case(trimmed(header.substr(at, equals - at)), name);
    std::string value;
    at = equals + 1;
    if (at < header.size() && header[at] == '"') {
      for (++at; at < header.size() && header[at] != '"'; ++at) {
        if (header[at] == '\\' && at + 1 < header.size()) ++at;
        value += header[at];
      }
      at = header.find(';', at);
    } else {
      const size_t end = header.find(';', at);
      value = trimmed(header.substr(at, end == std::string_view::npos ? end : end - at));
      at = end;
    }
    if (wanted) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string multipart_boundary(std::string_view content_type) {
  constexpr std::string_view kForm = "multipart/form-data";
  if (!equal_ignoring_case(trimmed(content_type.substr(0, content_type.find(';'))), kForm))
    throw RequestError(415, "", "the header Content-Type must be multipart/form-data");
  const auto boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kLongestBoundary)
    refuse_form("the header Content-Type needs a boundary of 1 to 70 characters");
  return *boundary;
}

MultipartReader::MultipartReader(const std::string& boundary, MultipartSink& sink)
    : sink_(sink), delimiter_("\r\n--" + boundary) {}

void MultipartReader::feed(std::string_view bytes) {
  unread_ += bytes;
  bool more = true;
  while (more) {
    switch (place_) {
      case Place::kBetween:
        more = read_between();
        break;
      case Place::kHeaders:
        more = read_headers();
        break;
      case Place::kData:
        more = read_data();
        break;
      case Place::kEnd:  // what follows is to be ignored
        unread_.clear();
        more = false;
        break;
    }
  }
}

void MultipartReader::finish() const {
  if (place_ != Place::kEnd) refuse_form("the form ends before its last boundary");
}

// After a delimiter: a new line, or "--" after the last one.
bool MultipartReader::read_between() {
  if (unread_.size() < 2) return false;
  if (unread_.starts_with("--")) {
    place_ = Place::kEnd;
  } else if (unread_.starts_with("\r\n")) {
    place_ = Place::kHeaders;
    if (++parts_ > kMostParts) refuse_form("the form has too many parts");
  } else {
    refuse_form("a boundary of the form must be followed by a new line");
  }
  unread_.erase(0, 2);
  return true;
}

bool MultipartReader::read_headers() {
  constexpr std::string_view kBlankLine = "\r\n\r\n";
  const size_t end = unread_.find(kBlankLine);
  // All of the blank line but its last byte may have arrived.
  const size_t begun = std::min(unread_.size(), kBlankLine.size() - 1);
  if (std::min(end, unread_.size() - begun) > kMostPartHeaderBytes)
    refuse_form("the headers of a part of the form are too large");
  if (end == std::string::npos) return false;
  std::string_view rest = std::string_view(unread_).substr(0, end);
  std::optional<std::string> name;
  std::optional<std::string> filename;
  while (!rest.empty()) {
    const size_t line_end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(line_end == std::string_view::npos ? rest.size() : line_end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos ||
        !equal_ignoring_case(trimmed(line.substr(0, colon)), "Content-Disposition"))
      continue;
    name = parameter(line.substr(colon + 1), "name");
    filename = parameter(line.substr(colon + 1), "filename");
  }
  if (!name) refuse_form("a part of the form has no name");
  unread_.erase(0, end + kBlankLine.size());
  place_ = Place::kData;
  sink_.begin_part(*name, filename);
  return true;
}

bool MultipartReader::read_data() {
  const size_t end = unread_.find(delimiter_);
  // The last bytes may be the beginning of a delimiter.
  const size_t sure = end != std::string::npos              ? end
                      : unread_.size() >= delimiter_.size() ? unread_.size() - delimiter_.size() + 1
                                                            : 0;
  if (!preamble_ && sure > 0) sink_.add_data(std::string_view(unread_).substr(0, sure));
  unread_.erase(0, sure);
  if (end == std::string::npos) return false;
  unread_.erase(0, delimiter_.size());
  preamble_ = false;
  place_ = Place::kBetween;
  return true;
}

}  // namespace octavo::server

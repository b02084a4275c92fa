#include "hub/model_name.h"

#include <algorithm>
#include <string_view>

namespace octavo {
namespace {

bool is_repo_part(std::string_view part) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !part.empty() && part.size() <= 96 && std::ranges::all_of(part, allowed) &&
         part.front() != '.' && part.front() != '-' && part.find("--") == std::string_view::npos &&
         part.find("..") == std::string_view::npos;
}

// Variants and revisions become parts of file names and URLs.
bool is_plain(std::string_view text) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/' || c == '+';
  };
  return std::ranges::all_of(text, allowed) && text.find("..") == std::string_view::npos &&
         !text.starts_with('/') && !text.ends_with('/');
}

// Moves the part after `mark` from `text` to `suffix`. Returns false if that part is empty.
bool split_suffix(char mark, std::string& text, std::string& suffix) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return true;
  suffix = text.substr(at + 1);
  text.resize(at);
  return !suffix.empty();
}

}  // namespace

std::string ModelName::text() const {
  return repo + (variant.empty() ? "" : ":" + variant) + (revision.empty() ? "" : "@" + revision);
}

std::optional<ModelName> parse_model_name(std::string text) {
  for (const std::string_view host :
       {"https://huggingface.co/", "https://hf.co/", "huggingface.co/", "hf.co/", "hf://"}) {
    if (text.starts_with(host)) {
      text.erase(0, host.size());
      break;
    }
  }
  ModelName name;
  if (!split_suffix('@', text, name.revision) || !split_suffix(':', text, name.variant))
    return std::nullopt;
  name.repo = text;
  const size_t slash = text.find('/');
  const std::string_view view = text;
  const bool repo = slash == std::string::npos ? is_repo_part(view)
                                               : is_repo_part(view.substr(0, slash)) &&
                                                     is_repo_part(view.substr(slash + 1));
  if (!repo || !is_plain(name.variant) || !is_plain(name.revision)) return std::nullopt;
  return name;
}

}  // namespace octavo

#include "cli/chat/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "text/utf8.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// Each entry is one line of the file, so newlines in pasted text are escaped.
std::string escaped(std::string_view line) {
  std::string text;
  for (char c : line) {
    if (c == '\\')
      text += "\\\\";
    else if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text + '\n';
}

std::string unescaped(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      line += text[i];
      continue;
    }
    ++i;
    line += text[i] == 'n' ? '\n' : text[i];
  }
  return replace_invalid_utf8(line);
}

// Writes with a single call, so that concurrent sessions do not interleave.
bool write_file(const fs::path& path, const std::string& text, int flags) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return close(file) == 0 && written;
}

void shorten(const fs::path& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += escaped(line);
  fs::path fresh = path;
  fresh += ".new";
  std::error_code ignored;
  if (write_file(fresh, text, O_TRUNC)) fs::rename(fresh, path, ignored);
}

}  // namespace

fs::path HistoryFile::default_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  // The XDG specification says to ignore relative paths.
  if (state != nullptr && fs::path(state).is_absolute())
    return fs::path(state) / "octavo" / "history";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return fs::path(home) / ".local" / "state" / "octavo" / "history";
}

std::vector<std::string> HistoryFile::load() const {
  std::vector<std::string> lines;
  std::ifstream file(path_);
  for (std::string text; std::getline(file, text);) lines.push_back(unescaped(text));
  if (lines.size() <= kLines) return lines;
  const bool long_file = lines.size() >= 2 * kLines;
  lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(kLines));
  if (long_file) shorten(path_, lines);
  return lines;
}

void HistoryFile::append(std::string_view line) const {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::create_directories(path_.parent_path(), ignored);
  write_file(path_, escaped(line), O_APPEND);
}

}  // namespace octavo

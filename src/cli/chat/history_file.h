// history_file.h - the lines typed in earlier sessions. A history that cannot be kept is never an
// error.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// Each line is appended as it is typed, so that two sessions at once both keep theirs.
class HistoryFile {
 public:
  // An empty path keeps nothing.
  explicit HistoryFile(std::filesystem::path path) : path_(std::move(path)) {}

  // $XDG_STATE_HOME/octavo/history, else ~/.local/state/octavo/history; empty without a home.
  static std::filesystem::path default_path();

  // The newest lines, oldest first. Shortens a file that has grown to twice as many.
  std::vector<std::string> load() const;
  // Makes the file and its folders when they are missing, readable by the user alone.
  void append(std::string_view line) const;

  static constexpr size_t kLines = 1000;

 private:
  std::filesystem::path path_;
};

}  // namespace octavo

// history_file.h - the input history of earlier sessions. Failing to read or write it is not an
// error.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// Each line is appended when it is entered, so that concurrent sessions keep each other's lines.
class HistoryFile {
 public:
  // With an empty path, nothing is stored.
  explicit HistoryFile(std::filesystem::path path) : path_(std::move(path)) {}

  // $XDG_STATE_HOME/octavo/history, else ~/.local/state/octavo/history; empty if HOME is unset.
  static std::filesystem::path default_path();

  // Returns the newest kLines lines, oldest first. Truncates a file of at least twice as many
  // lines.
  std::vector<std::string> load() const;
  // Creates the file, readable only by the user, and its folders if they are missing.
  void append(std::string_view line) const;

  static constexpr size_t kLines = 1000;

 private:
  std::filesystem::path path_;
};

}  // namespace octavo

#include "hub/model_file.h"

#include <algorithm>
#include <fstream>
#include <system_error>

namespace octavo {

namespace fs = std::filesystem;

std::vector<ModelFile> files_in(const fs::path& folder) {
  std::vector<ModelFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code not_there;
    if (!fs::is_regular_file(at->path(), not_there)) continue;
    const uint64_t size = fs::file_size(at->path(), not_there);
    if (not_there) continue;
    files.push_back({.path = at->path().lexically_relative(folder).generic_string(), .size = size});
  }
  std::ranges::sort(files, {}, &ModelFile::path);
  return files;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_directory(error) && !at->path().filename().string().starts_with('.'))
      folders.push_back(at->path());
  std::ranges::sort(folders);
  return folders;
}

std::string first_word_of(const fs::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

}  // namespace octavo

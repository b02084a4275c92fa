// model_file.h - one file of a model's repository or folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo {

struct ModelFile {
  std::string path;  // in the repository, like "config.json" or "1_Pooling/config.json"
  uint64_t size = 0;
  std::string hash = {};  // SHA-256, or git's SHA-1 of a blob, in hex; empty if unknown
};

// Returns the files in `folder` and its subfolders, sorted by path. Follows symbolic links and
// skips dangling ones.
std::vector<ModelFile> files_in(const std::filesystem::path& folder);

// Returns the folders directly in `folder`, sorted, without hidden ones.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);

// Returns the first word of a small text file such as a ref or a token; empty if there is none.
std::string first_word_of(const std::filesystem::path& path);

}  // namespace octavo

// model_file.h - a file of a model's repository or folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo {

struct ModelFile {
  std::string path;  // in the repository, like "config.json" or "1_Pooling/config.json"
  uint64_t size = 0;
  std::string hash = {};  // SHA-256, or git's SHA-1 of a blob, in hex; empty when not known
};

// The files in `folder` and its subfolders, by path; links are followed, and those that lead
// nowhere left out.
std::vector<ModelFile> files_in(const std::filesystem::path& folder);

// Of a small text file, like a ref or a token; empty: there is none.
std::string first_word_of(const std::filesystem::path& path);

}  // namespace octavo

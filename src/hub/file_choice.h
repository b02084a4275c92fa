// file_choice.h - chooses the files of a repository that one model needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/model_file.h"

namespace octavo {

struct FileChoice {
  // The weights come last, so that once they exist all other files exist too.
  std::vector<ModelFile> files = {};
  std::string opened = {};  // the file to open; empty: open the folder
  std::string kind = {};    // "Q4_K_M GGUF", "safetensors"
  uint64_t weight_bytes = 0;
  bool is_complete = true;  // judging by the file names

  uint64_t bytes() const;
};

// `variant` is a quantisation or a file name. If it is empty, prefers safetensors, then the best
// loadable quantisation. Throws SetupError with `repo` and the available variants if none matches
// or octavo cannot load it.
FileChoice choose_files(const std::vector<ModelFile>& files, const std::string& variant,
                        const std::string& repo);

// Returns every model in a folder, including those that octavo cannot load: one for safetensors and
// one per GGUF model.
std::vector<FileChoice> all_choices(const std::vector<ModelFile>& files);

}  // namespace octavo

// file_choice.h - of all files in a repository, those that one model needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/model_file.h"

namespace octavo {

struct FileChoice {
  // The weights last, so that whoever finds these finds the others too.
  std::vector<ModelFile> files = {};
  std::string opened = {};  // the file to open; empty: the folder
  std::string kind = {};    // "Q4_K_M GGUF", "safetensors"
  uint64_t weight_bytes = 0;
  bool is_complete = true;  // as far as the names tell

  uint64_t bytes() const;
};

// `variant` is a quantisation or a file's name; empty: safetensors where there are some, else the
// quantisation that serves most people. Throws SetupError, naming `repo` and what there is, when
// nothing fits or octavo could not load it.
FileChoice choose_files(const std::vector<ModelFile>& files, const std::string& variant,
                        const std::string& repo);

// Every model of a folder: one for safetensors, one for each GGUF model, also those octavo cannot
// load.
std::vector<FileChoice> all_choices(const std::vector<ModelFile>& files);

}  // namespace octavo

// local_model.h - a model on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo {

struct LocalModel {
  std::string name;            // the name that commands accept
  std::filesystem::path path;  // the file or folder to open
  uint64_t bytes = 0;
  std::string kind;   // "Q4_K_M GGUF", "safetensors"
  std::string place;  // "Hugging Face cache", "LM Studio", "Ollama"
  bool is_complete = true;
};

}  // namespace octavo

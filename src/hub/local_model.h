// local_model.h - a model that is on this machine, wherever it is kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo {

struct LocalModel {
  std::string name;            // what a command takes to find it
  std::filesystem::path path;  // what is opened
  uint64_t bytes = 0;
  std::string kind;   // "Q4_K_M GGUF", "safetensors"
  std::string place;  // "Hugging Face cache", "LM Studio", "Ollama"
  bool is_complete = true;
};

}  // namespace octavo

// model_by_name.h - finds a model by name, with a progress bar if it is downloaded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hub/find_model.h"

namespace octavo {

inline constexpr const char* kModelHelp =
    "A .gguf file, a folder with config.json and safetensors, or a model name: "
    "ORG/NAME[:quantisation-or-file][@revision], an alias, or a model of LM Studio or Ollama";

struct DownloadFlags {
  bool force = false;
  int connections = 4;
  double memory_fraction = 0.9;
  bool strict_config = false;
  // Called with the bytes so far and in total, besides the progress bar. May be empty.
  std::function<void(uint64_t done, uint64_t total)> on_bytes = nullptr;
};

// Reports what it does on stderr. Ctrl-C during a download exits with status 130; the next call
// resumes the download.
FoundModel find_model_by_name(const std::string& name, const DownloadFlags& flags = {});
// Checks the hub for a newer revision even if the model is on this machine.
FoundModel pull_model_by_name(const std::string& name, const DownloadFlags& flags);

}  // namespace octavo

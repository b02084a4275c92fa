// model_by_name.h - finds a command's model by its name, with a progress bar when it is downloaded.
#pragma once

#include <string>

#include "hub/find_model.h"

namespace octavo {

inline constexpr const char* kModelHelp =
    "A .gguf file, a folder with config.json and safetensors, or a name: "
    "ORG/NAME[:quantisation-or-file][@revision], an alias, a model of LM Studio or Ollama";

struct DownloadFlags {
  bool force = false;
  int connections = 4;
  double memory_fraction = 0.9;
};

// Says on stderr what it does. Ctrl-C during a download leaves with 130, ready to go on.
FoundModel find_model_by_name(const std::string& name, const DownloadFlags& flags = {});
// Asks the hub even if the model is here.
FoundModel pull_model_by_name(const std::string& name, const DownloadFlags& flags);

}  // namespace octavo

// adapter_source.h - where a LoRA adapter comes from.
#pragma once

#include <string>

namespace octavo::api {

struct AdapterSource {
  std::string name;
  std::string path;
  std::string base_model_name = {};  // reported as its parent; empty: the served model's name
};

// A value of --lora-modules: "name=path", or vLLM's JSON {"name": .., "path": ..,
// "base_model_name": ..}. Throws SetupError.
AdapterSource parse_lora_module(const std::string& text);

}  // namespace octavo::api

// make_served_model.h - makes the ServedModel of a loaded Llm.
#pragma once

#include <string>
#include <vector>

#include "api/served_model.h"
#include "llm/llm.h"
#include "llm/model_settings.h"

namespace octavo::server {

// Settings of the text side, named like the flags of `octavo serve`.
struct ServingSettings {
  std::vector<std::string> served_model_name = {};  // empty: the name of the file or folder
  std::string generation_config = "auto";
  ChatDialectOptions dialect = {};
  std::string version = {};  // octavo's, for the fingerprint
};

// `llm` must have been loaded with `settings` and `options`, and must outlive the result.
ServedModel make_served_model(Llm& llm, const ModelSettings& settings, const EngineOptions& options,
                              const ServingSettings& serving);

}  // namespace octavo::server

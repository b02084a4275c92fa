// make_served_model.h - a loaded model as requests see it.
#pragma once

#include <string>
#include <vector>

#include "api/served_model.h"
#include "llm/llm.h"
#include "llm/model_settings.h"

namespace octavo {

// What requests meet besides the engine, under the names of `octavo serve`'s flags.
struct ServingSettings {
  std::vector<std::string> served_model_name = {};  // none: the file's or folder's
  std::string generation_config = "auto";
  ChatDialectOptions dialect = {};
  std::string version = {};  // octavo's, for the fingerprint
};

// `llm` was loaded as `settings` and `options` say, and must outlive the result.
api::ServedModel make_served_model(Llm& llm, const ModelSettings& settings,
                                   const EngineOptions& options, const ServingSettings& serving);

}  // namespace octavo

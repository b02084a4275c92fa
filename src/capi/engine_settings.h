// engine_settings.h - octavo_open()'s options: JSON under the names of `octavo serve`'s flags.
#pragma once

#include <string>

#include "llm/make_served_model.h"
#include "llm/model_settings.h"

namespace octavo::capi {

struct EngineSettings {
  ModelSettings model = {};
  PoolingSettings pooling = {};
  ServingSettings serving = {};
};

// Throws SetupError naming an unknown option or an invalid value.
EngineSettings read_engine_settings(const std::string& model, const std::string& options_json);

}  // namespace octavo::capi

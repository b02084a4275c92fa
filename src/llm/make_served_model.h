// make_served_model.h - builds the served model from a loaded one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/served_model.h"
#include "llm/llm.h"
#include "llm/model_settings.h"

namespace octavo {

// Settings that affect requests but not the engine, named after the flags of `octavo serve`.
struct ServingSettings {
  std::vector<std::string> served_model_name = {};  // empty: the name of the file or folder
  std::string generation_config = "auto";
  ChatDialectOptions dialect = {};
  std::string version = {};  // of octavo, for the fingerprint
  std::vector<api::AdapterSource> lora_modules = {};
  // Downloads images that requests name by URL; null: such URLs are refused.
  std::shared_ptr<const api::MediaFetcher> media_fetcher = nullptr;
  // Whether this program has the hidden command kTextHelperCommand, so that untrusted grammars and
  // templates can be tried in processes of their own.
  bool use_helpers = false;
};

// `llm` was loaded with `settings` and `options`, and must outlive the result.
api::ServedModel make_served_model(Llm& llm, const ModelSettings& settings,
                                   const EngineOptions& options, const ServingSettings& serving);

}  // namespace octavo

// loaded_model.h - a model that is ready for requests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/served_model.h"

namespace octavo::capi {

class LoadedModel {
 public:
  virtual ~LoadedModel() = default;
  virtual const api::ServedModel& served() const = 0;
};

using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Loads a model from files; the options are a JSON object. Throws SetupError. Tests link a version
// with a fake engine.
std::unique_ptr<LoadedModel> load_model(const std::string& model, const std::string& options_json,
                                        LoadProgress progress);

}  // namespace octavo::capi

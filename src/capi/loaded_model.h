// loaded_model.h - a model that requests can be put to, however it came to be.
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

// From files, as a JSON object of options asks. Throws SetupError, or RequestError for what is no
// JSON. Tests link another one, over a fake engine.
std::unique_ptr<LoadedModel> load_model(const std::string& model, const std::string& options_json,
                                        LoadProgress progress);

}  // namespace octavo::capi

// plan_of.h - plans a model from its config, for tests.
#pragma once

#include <string>

#include "base/error.h"
#include "models/families/families.h"

namespace octavo {

inline DecoderPlan plan_of(const nlohmann::json& json) {
  return plan_model(Config(json, "config.json"));
}

// The message of the SetupError, or "no error".
inline std::string plan_error_of(const nlohmann::json& json) {
  try {
    plan_of(json);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace octavo

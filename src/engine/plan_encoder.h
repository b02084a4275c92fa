// plan_encoder.h - the options of an engine that runs an encoder. No MLX.
//
// An encoder computes a whole text in one step, and keeps its keys and values for that step only. So
// steps are as large as the longest text, there is no prefix cache, and the pool is small.
#pragma once

#include "engine/engine_options.h"
#include "models/model_description.h"

namespace octavo {

// `options` as they apply to the model: unchanged unless it is an encoder. Throws SetupError that names an
// option which an encoder does not support. Of its own result it returns the same.
EngineOptions options_for(const ModelDescription& model, const EngineOptions& options);

}  // namespace octavo

// engine_info.h - what octavo_engine_info() tells.
#pragma once

#include "api/fields/json_text.h"
#include "api/served_model.h"

namespace octavo::capi {

api::Json engine_info(const api::ServedModel& model);

}  // namespace octavo::capi

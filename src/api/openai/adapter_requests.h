// adapter_requests.h - the bodies of vLLM's /v1/load_lora_adapter and /v1/unload_lora_adapter.
#pragma once

#include <string>

#include "api/fields/json_text.h"
#include "api/served_model.h"

namespace octavo::api {

// Both return vLLM's text and throw RequestError. Loading reads files, so it takes time.
std::string load_adapter(const Json& body, const ServedModel& model,
                         const Preparation& preparation = {});
std::string unload_adapter(const Json& body, const ServedModel& model);

Json load_adapter_schema();
Json unload_adapter_schema();

}  // namespace octavo::api

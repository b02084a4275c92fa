// render_format.h - the answers of vLLM's render routes: what a request asks the engine for, without
// running it. Routers choose a replica by the token ids.
#pragma once

#include "api/generation_request.h"

namespace octavo::api {

// One prompt of the job, with the names of vLLM's GenerateRequest. `id` has the prefix of the route.
Json rendered_prompt(const GenerationJob& job, size_t prompt, const std::string& id,
                     const ServedModel& model);

Json rendered_prompt_schema();

}  // namespace octavo::api

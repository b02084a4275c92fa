// token_requests.h - /tokenize and /detokenize: body in, response out. Any thread.
#pragma once

#include "api/fields/json_text.h"
#include "api/preparation.h"
#include "api/served_model.h"

namespace octavo::api {

// Both throw RequestError.
Json tokenize_text(const Json& body, const ServedModel& model, const Preparation& preparation = {});
Json detokenize_tokens(const Json& body, const ServedModel& model,
                       const Preparation& preparation = {});

Json tokenize_schema();
Json detokenize_schema();

}  // namespace octavo::api

// tool_prompt.h - prepares tools and tool calls for the chat template.
#pragma once

#include "api/fields/json_text.h"
#include "generation/chat_dialect.h"

namespace octavo::api {

// Converts earlier tool calls: arguments to objects, ids to the dialect's length.
void prepare_tool_calls(Json& messages, const ToolDialect* dialect);

// For templates without tool support: tools go into the system message, calls are written in the
// dialect, results become user messages. `tools` may be null.
Json with_tools_as_text(const Json& messages, const Json& tools, const ToolDialect& dialect);

}  // namespace octavo::api

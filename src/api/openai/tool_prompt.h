// tool_prompt.h - tools in a conversation, made ready for a chat template.
#pragma once

#include "api/fields/json_text.h"
#include "generation/chat_dialect.h"

namespace octavo::api {

// Earlier calls as templates want them: arguments as objects, ids as long as the dialect's.
void prepare_tool_calls(Json& messages, const ToolDialect* dialect);

// For templates that know no tools: the tools in a system message, calls as the dialect writes
// them, results as a user's words. `tools` may be null.
Json with_tools_as_text(const Json& messages, const Json& tools, const ToolDialect& dialect);

}  // namespace octavo::api

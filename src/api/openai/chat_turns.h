// chat_turns.h - rewrites the messages and tools of a chat into the form that strict templates require.
// Any thread.
#pragma once

#include "api/fields/json_text.h"

namespace octavo::api {

// Appends a message, or joins it to the last one if both are of the user.
void append_turn(Json& messages, Json message);

// For templates that accept one system message, at the beginning, and alternating turns: later
// system messages become user messages, and consecutive messages of one role are joined. Null if
// that changes nothing.
Json with_alternating_turns(const Json& messages);

// For templates that read the parameters of every function: functions without any get an empty object
// as their schema. Null if that changes nothing.
Json with_empty_parameters(const Json& tools);

}  // namespace octavo::api

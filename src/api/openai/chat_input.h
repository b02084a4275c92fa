// chat_input.h - prepares the messages of a request for the chat template.
#pragma once

#include <vector>

#include "api/fields/json_values.h"
#include "api/images/image_source.h"

namespace octavo::api {

// Checks roles and contents, joins text parts, and maps the role developer to system. The content of
// a message with images stays a list, in which {"type":"image"} stands for the next image. `images`:
// those of a translation (translated_image()); becomes all images of the messages, in order. Throws
// RequestError(400) naming the message.
Json read_messages(const Json& messages, std::vector<ImageSource>& images);

// For OpenAPI.
Json messages_schema();

}  // namespace octavo::api

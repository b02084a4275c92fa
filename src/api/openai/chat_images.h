// chat_images.h - shows the images of a chat to the model's template. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "api/fields/json_text.h"
#include "api/images/image_source.h"
#include "api/served_model.h"

namespace octavo::api {

// Renders the messages, whose lists of parts hold `count` images, with a placeholder for each image. A
// template that does not show the images of tool results gets them in a user message after the
// results.
std::string render_with_images(const Json& messages, size_t count, const ImageSettings& settings,
                               const Tokenizer& tokenizer,
                               const std::function<std::string(const Json&)>& render);

// The same for a model that may take no images: throws RequestError(400).
std::string render_with_images(const Json& messages, const std::vector<ImageSource>& images,
                               const ServedModel& model,
                               const std::function<std::string(const Json&)>& render);

// The messages with the images of tool results moved to user messages after them; null if there are
// none.
Json with_images_after_results(const Json& messages);

}  // namespace octavo::api

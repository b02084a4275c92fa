// image_source.h - an image as a request has it. Any thread. No MLX.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/fields/json_values.h"

namespace octavo::api {

struct ImageSource {
  std::string field = {};                             // of the request; errors name it
  std::shared_ptr<const std::string> file = nullptr;  // null: it is at `url`
  std::string url = {};                               // http: or https:
  bool low_detail = false;                            // at most kLowDetailTokens
};

// These throw RequestError(400) naming `field`.
//
// A data: URL with base64, which is decoded, or an http: or https: URL.
ImageSource image_at_url(const Json& url, const std::string& field);
// A file in base64.
ImageSource image_in_base64(const Json& text, const std::string& field);
// Adds an image of a request. Refuses more than any server allows, before many small ones take memory.
void add_image(std::vector<ImageSource>& images, ImageSource image);
// The value of "detail": null, auto, low, high or original. True: low.
bool is_low_detail(const Json& value, const std::string& field);

// In a message of a chat that another API was translated to, the part that stands for image `index`
// of the translation. Clients cannot send it: without images of a translation, it is an unknown part.
inline constexpr const char* kTranslatedImage = "octavo_image";
Json translated_image(size_t index);

// For OpenAPI: a URL as image_at_url() takes it.
Json image_url_schema();
Json detail_schema();

}  // namespace octavo::api

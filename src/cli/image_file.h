// image_file.h - image files that a user names on the command line or in a chat.
#pragma once

#include <string>

#include "api/images/image_source.h"

namespace octavo {

// Reads the file and decodes it once, so that an unusable one is reported now. Throws RequestError(400)
// that names `path`.
api::ImageSource read_image_file(const std::string& path);

}  // namespace octavo

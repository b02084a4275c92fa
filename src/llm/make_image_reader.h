// make_image_reader.h - the reader of a loaded model's images.
#pragma once

#include <memory>

#include "api/images/image_reader.h"
#include "api/request_memory.h"
#include "engine/engine.h"

namespace octavo {

struct ImageReaderOptions {
  api::RequestMemory memory = {};                              // of open requests
  int max_images = api::kMaxImages;                            // of a request
  std::shared_ptr<const api::MediaFetcher> fetcher = nullptr;  // null: URLs are refused
};

// Null if the engine takes no images: Engine::images_refused() says why.
std::shared_ptr<const api::ImageReader> make_image_reader(const Engine& engine,
                                                          const ImageReaderOptions& options = {});

}  // namespace octavo

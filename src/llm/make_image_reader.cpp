#include "llm/make_image_reader.h"

#include <algorithm>

#include "vision/decode_image.h"

namespace octavo {

std::shared_ptr<const api::ImageReader> make_image_reader(const Engine& engine,
                                                          const ImageReaderOptions& options) {
  const auto& vision = engine.model().vision;
  if (!vision || engine.max_image_tokens() == 0 || options.max_images == 0) return nullptr;
  return std::make_shared<const api::ImageReader>(
      api::ImageSettings{
          .processor = vision->processor,
          .image_token = vision->image_token,
          .begin_token = vision->begin_token,
          .end_token = vision->end_token,
          .break_token = vision->break_token,
          .max_tokens = engine.max_image_tokens(),
          .max_images = options.max_images,
          .limits = {.pixels = std::min(ImageLimits{}.pixels,
                                        options.memory.decoding_bytes / kDecodingBytesPerPixel)}},
      options.memory.image_bytes, options.fetcher);
}

}  // namespace octavo

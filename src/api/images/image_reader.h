// image_reader.h - reads the images of requests as their model sees them. No MLX.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/images/decoding_queue.h"
#include "api/images/image_memory.h"
#include "api/images/image_settings.h"
#include "api/images/image_source.h"
#include "api/images/media_fetcher.h"
#include "api/preparation.h"
#include "scheduler/prompt_image.h"

namespace octavo::api {

// Immutable apart from counts; text workers, several at once.
class ImageReader {
 public:
  // `memory_bytes`: of the resized images of open requests. Without a fetcher, URLs are refused.
  ImageReader(ImageSettings settings, size_t memory_bytes,
              std::shared_ptr<const MediaFetcher> fetcher = nullptr);

  const ImageSettings& settings() const { return settings_; }
  size_t memory_taken() const { return memory_->taken(); }

  // Throws RequestError (400) if a request has too many images. Before it is rendered: that may take long.
  void check_count(std::span<const ImageSource> sources) const;
  // Fetches, decodes and resizes the images; place_images() sets their offsets. Throws RequestError
  // naming the image's field: 400 if it cannot be used, 429 while other requests hold the memory.
  std::vector<PromptImage> read(std::span<const ImageSource> sources,
                                const Preparation& preparation) const;

 private:
  std::vector<std::byte> fetch(const ImageSource& source, const Preparation& preparation) const;
  PromptImage read_one(const ImageSource& source, std::span<const std::byte> file,
                       size_t taken_before, const Preparation& preparation) const;
  ImageMemory::Lease take(size_t bytes, size_t taken_before, const std::string& field) const;
  std::string identifier_of(const Image& resized) const;

  const ImageSettings settings_;
  const std::string settings_digest_;  // of the processor
  const std::shared_ptr<ImageMemory> memory_;
  const std::shared_ptr<const MediaFetcher> fetcher_;
  // One image at a time: of the largest, that takes about a gigabyte.
  mutable DecodingQueue decoding_;
};

}  // namespace octavo::api

#include "api/images/image_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "base/units.h"
#include "vision/decode_image.h"
#include "vision/fit_image.h"
#include "vision/image_pixels.h"
#include "vision/resize.h"

namespace octavo::api {
namespace {

// Pixels and the memory that is counted for them.
struct HeldPixels {
  ImagePixels pixels;
  ImageMemory::Lease lease;
};

std::string hexadecimal(const Sha256Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

template <typename T>
std::span<const uint8_t> bytes_of(const T& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()),
          values.size() * sizeof(typename T::value_type)};
}

// Of everything that decides which numbers the tower reads for given pixels.
std::string digest_of(const ImageProcessor& processor) {
  std::vector<uint8_t> facts;
  const auto add = [&](std::span<const uint8_t> bytes) {
    facts.insert(facts.end(), bytes.begin(), bytes.end());
  };
  const std::string numbers = fmt::format("{} {} {} {}\n", static_cast<int>(processor.family),
                                          processor.patch, processor.merge, processor.frames);
  add(bytes_of(numbers));
  for (const auto& channel : processor.levels) add(bytes_of(channel));
  return hexadecimal(sha256(facts));
}

}  // namespace

ImageReader::ImageReader(ImageSettings settings, size_t memory_bytes,
                         std::shared_ptr<const MediaFetcher> fetcher)
    : settings_(std::move(settings)),
      settings_digest_(digest_of(settings_.processor)),
      memory_(std::make_shared<ImageMemory>(memory_bytes)),
      fetcher_(std::move(fetcher)) {}

std::string ImageReader::identifier_of(const Image& resized) const {
  const std::string facts = fmt::format("{} {} {} {}", settings_digest_, resized.width,
                                        resized.height, hexadecimal(sha256(resized.rgb)));
  return hexadecimal(sha256(bytes_of(facts)));
}

ImageMemory::Lease ImageReader::take(size_t bytes, size_t taken_before,
                                     const std::string& field) const {
  if (taken_before + bytes > memory_->bytes())
    refuse(field, fmt::format("the images of the request take more than {} of memory; send fewer "
                              "or smaller ones",
                              format_bytes(memory_->bytes())));
  auto lease = ImageMemory::try_take(memory_, bytes);
  if (!lease)
    throw RequestError(429, field,
                       fmt::format("the images of open requests take all {} of memory for them; "
                                   "try again later",
                                   format_bytes(memory_->bytes())));
  return std::move(*lease);
}

PromptImage ImageReader::read_one(const ImageSource& source, std::span<const std::byte> file,
                                  size_t taken_before, const Preparation& preparation) const {
  const int max_tokens =
      source.low_detail ? std::min(settings_.max_tokens, kLowDetailTokens) : settings_.max_tokens;
  try {
    const DecodingQueue::Place place(decoding_);
    place.wait_for_turn(preparation);
    Image image = decode_image(file, settings_.limits);
    preparation.check();
    const ImageSize size = fit_image(settings_.processor, image.width, image.height, max_tokens);
    const size_t bytes =
        size_t{3} * static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
    auto lease = take(bytes, taken_before, source.field);
    Image resized = image.width == size.width && image.height == size.height
                        ? std::move(image)
                        : resize(image, size.width, size.height, settings_.processor.filter);
    PromptImage read{.identifier = identifier_of(resized),
                     .grid_h = size.grid_h / settings_.processor.merge,
                     .grid_w = size.grid_w / settings_.processor.merge,
                     .row_breaks = settings_.break_token >= 0};
    auto held = std::make_shared<const HeldPixels>(HeldPixels{
        .pixels = {.resized = std::move(resized), .grid_h = size.grid_h, .grid_w = size.grid_w},
        .lease = std::move(lease)});
    read.pixels = std::shared_ptr<const ImagePixels>(held, &held->pixels);
    return read;
  } catch (const ImageError& error) {
    refuse(source.field, error.what());
  }
}

std::vector<std::byte> ImageReader::fetch(const ImageSource& source,
                                          const Preparation& preparation) const {
  if (!fetcher_)
    refuse(source.field,
           "URLs of images are off; send a data: URL, or start the server with "
           "--allowed-media-domains HOST");
  const Waiting waiting(preparation);
  try {
    return fetcher_->fetch(source.url, preparation);
  } catch (const RequestError& error) {
    preparation.check();  // a stopped request has no field
    throw RequestError(error.status(), source.field, error.what());
  }
}

void ImageReader::check_count(std::span<const ImageSource> sources) const {
  if (sources.size() > static_cast<size_t>(settings_.max_images))
    refuse(sources[static_cast<size_t>(settings_.max_images)].field,
           fmt::format("the request has {} images; at most {} are allowed "
                       "(--limit-mm-per-prompt)",
                       sources.size(), settings_.max_images));
}

std::vector<PromptImage> ImageReader::read(std::span<const ImageSource> sources,
                                           const Preparation& preparation) const {
  check_count(sources);
  std::vector<PromptImage> images;
  size_t taken = 0;
  for (const ImageSource& source : sources) {
    preparation.check();
    if (source.file) {
      images.push_back(
          read_one(source, std::as_bytes(std::span(*source.file)), taken, preparation));
    } else {
      const std::vector<std::byte> file = fetch(source, preparation);
      // Counted as well: many may wait for their turn to be decoded.
      const ImageMemory::Lease lease = take(file.size(), taken, source.field);
      images.push_back(read_one(source, file, taken + file.size(), preparation));
    }
    taken += images.back().pixels->resized.rgb.size();
  }
  return images;
}

}  // namespace octavo::api

#include "vision/fit_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace octavo {
namespace {

// The sizes are computed as in Python: in double precision, in the same order.

struct Sides {
  int64_t width = 0;
  int64_t height = 0;
  int64_t pixels() const { return width * height; }
};

constexpr int kQwenAspect = 200;

int64_t tokens_of(const ImageProcessor& processor, const Sides& sides) {
  const int64_t side = processor.token_side();
  return (sides.width / side) * (sides.height / side);
}

[[noreturn]] void refuse_few_tokens(int max_tokens) {
  throw ImageError(fmt::format("the image needs more than {} tokens; allow more", max_tokens));
}

// Sides are rounded to the nearest multiple of `side`, halves to the even multiple.
Sides smart_resize(const Sides& image, int side, int64_t min_pixels, int64_t max_pixels) {
  const double w = static_cast<double>(image.width);
  const double h = static_cast<double>(image.height);
  const double pixels = static_cast<double>(image.pixels());
  const auto multiple = [&](double count) { return static_cast<int64_t>(count) * side; };
  Sides sides{multiple(std::nearbyint(w / side)), multiple(std::nearbyint(h / side))};
  if (sides.pixels() > max_pixels) {
    const double beta = std::sqrt(pixels / static_cast<double>(max_pixels));
    sides = {multiple(std::max(1.0, std::floor(w / beta / side))),
             multiple(std::max(1.0, std::floor(h / beta / side)))};
  } else if (sides.pixels() < min_pixels) {
    const double beta = std::sqrt(static_cast<double>(min_pixels) / pixels);
    sides = {multiple(std::ceil(w * beta / side)), multiple(std::ceil(h * beta / side))};
  }
  return sides;
}

Sides fit_qwen(const ImageProcessor& processor, const Sides& image, int max_tokens) {
  const auto [shorter, longer] = std::minmax(image.width, image.height);
  if (longer > kQwenAspect * shorter) {
    throw ImageError(fmt::format(
        "the image is {} x {} pixels; the longer side may be at most {} times the shorter one",
        image.width, image.height, kQwenAspect));
  }
  const int side = processor.token_side();
  const int64_t token_pixels = int64_t{side} * side;
  int64_t max_pixels = std::min(processor.max_pixels, max_tokens * token_pixels);
  for (;;) {
    const Sides sides =
        smart_resize(image, side, std::min(processor.min_pixels, max_pixels), max_pixels);
    const int64_t tokens = tokens_of(processor, sides);
    if (tokens <= max_tokens) return sides;
    // The shorter side cannot become less than one token, so the longer one has to.
    max_pixels = std::min(max_pixels - 1, max_pixels * max_tokens / tokens);
    if (max_pixels < 1) refuse_few_tokens(max_tokens);
  }
}

Sides fit_gemma4(const ImageProcessor& processor, const Sides& image, int max_tokens) {
  // The model is trained with these numbers of tokens.
  int budget = processor.max_tokens;
  while (budget > max_tokens && budget % 2 == 0 && budget > 70) budget /= 2;
  if (budget > max_tokens) refuse_few_tokens(max_tokens);

  const int side = processor.token_side();
  const int64_t max_side = int64_t{budget} * side;
  const double w = static_cast<double>(image.width);
  const double h = static_cast<double>(image.height);
  const double target = static_cast<double>(int64_t{budget} * processor.merge * processor.merge *
                                            processor.patch * processor.patch);
  const double factor = std::sqrt(target / static_cast<double>(image.pixels()));
  const auto multiple = [&](double length) {
    return static_cast<int64_t>(std::floor(length / side)) * side;
  };
  Sides sides{multiple(factor * w), multiple(factor * h)};
  if (sides.height == 0) {
    sides = {std::min(image.width / image.height * side, max_side), side};
  } else if (sides.width == 0) {
    sides = {side, std::min(image.height / image.width * side, max_side)};
  }
  return sides;
}

Sides fit_gemma3(const ImageProcessor& processor, int max_tokens) {
  const Sides sides{processor.max_width, processor.max_height};
  if (tokens_of(processor, sides) > max_tokens) refuse_few_tokens(max_tokens);
  return sides;
}

Sides fit_into(const ImageProcessor& processor, Sides image, int max_width, int max_height) {
  const double ratio = std::max(static_cast<double>(image.height) / max_height,
                                static_cast<double>(image.width) / max_width);
  if (ratio > 1) {
    image = {static_cast<int64_t>(std::floor(static_cast<double>(image.width) / ratio)),
             static_cast<int64_t>(std::floor(static_cast<double>(image.height) / ratio))};
  }
  const int64_t side = processor.token_side();
  // A side that was rounded down to nothing is still one token long.
  const auto padded = [&](int64_t length) {
    return (std::max<int64_t>(length, 1) - 1) / side * side + side;
  };
  return {padded(image.width), padded(image.height)};
}

Sides fit_pixtral(const ImageProcessor& processor, const Sides& image, int max_tokens) {
  int max_width = processor.max_width;
  int max_height = processor.max_height;
  Sides sides = fit_into(processor, image, max_width, max_height);
  while (tokens_of(processor, sides) > max_tokens) {
    const int longer =
        static_cast<int>(std::max(sides.width, sides.height)) - processor.token_side();
    if (longer < 1) refuse_few_tokens(max_tokens);
    max_width = std::min(max_width, longer);
    max_height = std::min(max_height, longer);
    sides = fit_into(processor, image, max_width, max_height);
  }
  return sides;
}

Sides fit_family(const ImageProcessor& processor, const Sides& image, int max_tokens) {
  switch (processor.family) {
    case ImageFamily::kQwen:
      return fit_qwen(processor, image, max_tokens);
    case ImageFamily::kGemma4:
      return fit_gemma4(processor, image, max_tokens);
    case ImageFamily::kGemma3:
      return fit_gemma3(processor, max_tokens);
    case ImageFamily::kPixtral:
      break;
  }
  return fit_pixtral(processor, image, max_tokens);
}

}  // namespace

ImageSize fit_image(const ImageProcessor& processor, int width, int height, int max_tokens) {
  OCTAVO_CHECK(width >= 1 && height >= 1);
  if (max_tokens < 1) refuse_few_tokens(max_tokens);
  const Sides sides = fit_family(processor, {width, height}, max_tokens);
  ImageSize size;
  size.width = static_cast<int>(sides.width);
  size.height = static_cast<int>(sides.height);
  size.grid_w = size.width / processor.patch;
  size.grid_h = size.height / processor.patch;
  size.tokens = static_cast<int>(tokens_of(processor, sides));
  return size;
}

}  // namespace octavo

#include "vision/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

constexpr int kWeightBits = 32 - 8 - 2;  // the sum of weights may leave 0 to 1 by two bits
constexpr int kChannels = 3;

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel kernel_of(ResizeFilter filter) {
  if (filter == ResizeFilter::kBilinear) return {bilinear, 1.0};
  return {bicubic, 2.0};
}

// The weights of one pass: output i is the sum of weights[i * stride + k] * input[first[i] + k].
struct Weights {
  int stride = 0;
  std::vector<int> first;
  std::vector<int> count;
  std::vector<int32_t> values;
};

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<int32_t>(weight < 0 ? -0.5 + scaled : 0.5 + scaled);
}

// The order of the operations decides about the last bit of a weight.
Weights make_weights(int in_size, int out_size, const Kernel& kernel) {
  const double scale = static_cast<double>(in_size) / out_size;
  const double filter_scale = std::max(scale, 1.0);
  const double inverse = 1.0 / filter_scale;
  const double support = kernel.support * filter_scale;

  Weights weights;
  weights.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  weights.values.resize(static_cast<size_t>(out_size) * weights.stride);
  std::vector<double> row(weights.stride);
  for (int out = 0; out < out_size; ++out) {
    const double center = (out + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int count = std::min(static_cast<int>(center + support + 0.5), in_size) - first;
    double sum = 0.0;
    for (int k = 0; k < count; ++k) {
      row[k] = kernel.weight((k + first - center + 0.5) * inverse);
      sum += row[k];
    }
    int32_t* values = &weights.values[static_cast<size_t>(out) * weights.stride];
    for (int k = 0; k < count; ++k) values[k] = to_fixed(sum != 0.0 ? row[k] / sum : row[k]);
    weights.first.push_back(first);
    weights.count.push_back(count);
  }
  return weights;
}

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

Image empty_image(int width, int height) {
  Image image{.width = width, .height = height, .rgb = {}};
  image.rgb.resize(static_cast<size_t>(width) * height * kChannels);
  return image;
}

Image resize_width(const Image& image, int width, const Kernel& kernel) {
  const Weights weights = make_weights(image.width, width, kernel);
  Image out = empty_image(width, image.height);
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* from = &image.rgb[static_cast<size_t>(y) * image.width * kChannels];
    uint8_t* to = &out.rgb[static_cast<size_t>(y) * width * kChannels];
    for (int x = 0; x < width; ++x, to += kChannels) {
      const int32_t* values = &weights.values[static_cast<size_t>(x) * weights.stride];
      const uint8_t* pixel = from + static_cast<size_t>(weights.first[x]) * kChannels;
      int32_t red = 1 << (kWeightBits - 1);
      int32_t green = red;
      int32_t blue = red;
      for (int k = 0; k < weights.count[x]; ++k, pixel += kChannels) {
        red += pixel[0] * values[k];
        green += pixel[1] * values[k];
        blue += pixel[2] * values[k];
      }
      to[0] = to_byte(red);
      to[1] = to_byte(green);
      to[2] = to_byte(blue);
    }
  }
  return out;
}

Image resize_height(const Image& image, int height, const Kernel& kernel) {
  const Weights weights = make_weights(image.height, height, kernel);
  Image out = empty_image(image.width, height);
  const size_t row = static_cast<size_t>(image.width) * kChannels;
  std::vector<int32_t> sums(row);
  for (int y = 0; y < height; ++y) {
    std::ranges::fill(sums, 1 << (kWeightBits - 1));
    const int32_t* values = &weights.values[static_cast<size_t>(y) * weights.stride];
    for (int k = 0; k < weights.count[y]; ++k) {
      const uint8_t* from = &image.rgb[row * (weights.first[y] + k)];
      for (size_t i = 0; i < row; ++i) sums[i] += from[i] * values[k];
    }
    std::ranges::transform(sums, &out.rgb[row * y], to_byte);
  }
  return out;
}

// Pillow 13 starts with the height if that removes far more rows than the other pass columns.
bool starts_with_height(const Image& image, int width, int height) {
  const int fewer_rows = image.height - height;
  return fewer_rows > 0 && fewer_rows > (image.width - width) * 2;
}

}  // namespace

Image resize(const Image& image, int width, int height, ResizeFilter filter) {
  OCTAVO_CHECK(image.width >= 1 && image.height >= 1 && width >= 1 && height >= 1);
  const Kernel kernel = kernel_of(filter);
  const bool height_first = starts_with_height(image, width, height);
  Image resized;
  const Image* from = &image;
  for (const bool is_height : {height_first, !height_first}) {
    if ((is_height ? image.height : image.width) == (is_height ? height : width)) continue;
    resized = is_height ? resize_height(*from, height, kernel) : resize_width(*from, width, kernel);
    from = &resized;
  }
  return from == &image ? image : std::move(resized);
}

}  // namespace octavo

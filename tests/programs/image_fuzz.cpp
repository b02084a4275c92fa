// image_fuzz [--count N] [--seed N] [--format png|jpeg|webp|gif] - changes valid images N times and
// decodes them. Every change has to give an image or an ImageError, within --longest-ms and
// --most-mib of memory for the process; a sanitizer or a crash reports anything else. Prints how
// many of each format were decoded, refused, and refused after a panic in a decoder.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "vision/decode_image.h"
#include "vision/testing/sample_bytes.h"

namespace octavo {
namespace {

using Bytes = std::vector<std::byte>;

constexpr ImageLimits kLimits{.pixels = 1'000'000, .side = 4'096};
constexpr size_t kMostBytes = 8192;  // of a changed image

uint32_t crc32(std::span<const std::byte> bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) * 0xedb88320u);
      made[i] = value;
    }
    return made;
  }();
  uint32_t sum = ~0u;
  for (const std::byte byte : bytes) {
    sum = table[(sum ^ std::to_integer<uint32_t>(byte)) & 255] ^ (sum >> 8);
  }
  return ~sum;
}

uint32_t big_endian(const Bytes& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

// Otherwise the decoder would refuse nearly every change for its checksum.
void repair_png(Bytes& bytes) {
  constexpr size_t kAround = 12;  // length, name and checksum of a chunk
  for (size_t at = 8; at + kAround <= bytes.size();) {
    const size_t length = big_endian(bytes, at);
    if (length > bytes.size() - at - kAround) return;
    const uint32_t sum = crc32(std::span(bytes).subspan(at + 4, length + 4));
    for (size_t i = 0; i < 4; ++i) {
      bytes[at + 8 + length + i] = static_cast<std::byte>(sum >> (24 - 8 * i));
    }
    at += kAround + length;
  }
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // `others` are images of the same format.
  Bytes change(const std::vector<Bytes>& others) {
    Bytes bytes = others[below(others.size())];
    const size_t more = below(2) == 0 ? below(6) : 0;
    for (size_t i = 0; i <= more; ++i) change_once(bytes, others);
    if (bytes.size() > kMostBytes) bytes.resize(kMostBytes);
    if (below(4) != 0 && bytes.size() > 1 && bytes[1] == std::byte{'P'}) repair_png(bytes);
    return bytes;
  }

 private:
  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  // A quarter of the changes is in the header.
  size_t place(const Bytes& bytes) {
    return below(below(4) == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size());
  }

  void change_once(Bytes& bytes, const std::vector<Bytes>& others) {
    if (bytes.empty()) return;
    const size_t at = place(bytes);
    const size_t length = 1 + below(std::min<size_t>(bytes.size() - at, 32));
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = first + static_cast<std::ptrdiff_t>(length);
    constexpr std::array kExtremes = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
    switch (below(8)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1 << below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(below(256));
        break;
      case 2: {
        const auto value = static_cast<std::byte>(kExtremes[below(kExtremes.size())]);
        std::fill_n(first, std::min<size_t>(length, 1 + below(4)), value);
        break;
      }
      case 3:
        bytes.erase(first, last);
        break;
      case 4: {
        const Bytes copy(first, last);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), copy.begin(),
                     copy.end());
        break;
      }
      case 5:
        bytes.resize(at);
        break;
      case 6: {
        const Bytes& other = others[below(others.size())];
        const size_t from = below(other.size());
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from),
                    std::min(length, other.size() - from), first);
        break;
      }
      default:
        std::reverse(first, last);
        break;
    }
  }

  std::mt19937_64 random_;
};

struct Counts {
  uint64_t decoded = 0;
  uint64_t refused = 0;
  uint64_t panicked = 0;
  double longest_ms = 0;
};

void decode_one(const Bytes& bytes, Counts& counts) {
  const auto start = std::chrono::steady_clock::now();
  try {
    const Image image = decode_image(bytes, kLimits);
    OCTAVO_CHECK(image.width >= 1 && image.width <= kLimits.side);
    OCTAVO_CHECK(image.height >= 1 && image.height <= kLimits.side);
    OCTAVO_CHECK(image.rgb.size() == size_t{3} * image.width * image.height);
    ++counts.decoded;
  } catch (const ImageError& error) {
    const bool is_panic = std::string_view(error.what()) == "the image is corrupt";
    ++(is_panic ? counts.panicked : counts.refused);
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  counts.longest_ms = std::max(counts.longest_ms, took.count());
}

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return usage.ru_maxrss >> 20;
#else
  return usage.ru_maxrss >> 10;
#endif
}

struct Options {
  uint64_t count = 20'000;
  uint64_t seed = 1;
  std::string format;
  double longest_ms = 2000;
  long most_mib = 1024;
  std::string last;  // a file for the image that is being decoded, to find the cause of a crash
};

int run(const Options& options) {
  std::map<std::string, std::vector<Bytes>> formats;
  for (const ImageSample& sample : kImageSamples) {
    const std::string format(sample.name.substr(0, sample.name.find('_')));
    if (options.format.empty() || options.format == format) {
      formats[format].push_back(sample_bytes(sample));
    }
  }
  if (formats.empty()) throw SetupError("--format must be png, jpeg, webp or gif");
  bool is_good = true;
  for (const auto& [format, images] : formats) {
    Mutator mutator(options.seed);
    Counts counts;
    for (uint64_t i = 0; i < options.count / formats.size(); ++i) {
      const Bytes bytes = mutator.change(images);
      if (!options.last.empty()) {
        std::ofstream(options.last, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
      }
      decode_one(bytes, counts);
    }
    fmt::print("{}: {} decoded, {} refused, {} panics, longest {:.1f} ms\n", format, counts.decoded,
               counts.refused, counts.panicked, counts.longest_ms);
    is_good = is_good && counts.decoded > 0 && counts.refused > 0 &&
              counts.longest_ms <= options.longest_ms;
  }
  fmt::print("peak memory {} MiB\n", peak_mib());
  return is_good && peak_mib() <= options.most_mib ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app{"Decodes changed images."};
  app.add_option("--count", options.count, "changed images, divided among the formats");
  app.add_option("--seed", options.seed, "of the changes");
  app.add_option("--format", options.format, "only this one: png, jpeg, webp or gif");
  app.add_option("--longest-ms", options.longest_ms, "allowed time per image");
  app.add_option("--most-mib", options.most_mib, "allowed peak memory of the process");
  app.add_option("--last", options.last, "write each image to this file before it is decoded");
  CLI11_PARSE(app, argc, argv);
  return octavo::run(options);
}

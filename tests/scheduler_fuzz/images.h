// fuzz_images.h - random images for requests of scheduler_fuzz, and what the fake model sees of them. No MLX.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cache/sequence_cache.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_images.h"
#include "support/random_draws.h"

namespace octavo {

inline constexpr std::string_view kFuzzImage = "image ";  // names of images; a number follows
// Lines of images of this and higher numbers end with a break.
inline constexpr int kFuzzBreaks = 10;

inline PromptImage fuzz_image(int number, int offset) {
  return {.identifier = fmt::format("{}{}", kFuzzImage, number),
          .offset = offset,
          .grid_h = number % 3 + 1,
          .grid_w = number % 4 + 1,
          .row_breaks = number >= kFuzzBreaks};
}

// The tokens of a block as the fake model sees them.
inline std::vector<TokenId> fuzz_seen_block(std::span<const TokenId> tokens,
                                            const ExtraKeys& extra) {
  std::vector<TokenId> seen(tokens.begin(), tokens.end());
  for (const ExtraKey& key : extra) {
    if (!key.name.starts_with(kFuzzImage)) continue;
    const int number = std::stoi(key.name.substr(kFuzzImage.size()));
    const PromptImage image = fuzz_image(number, 0);
    const std::vector<TokenId> whole =
        fake_seen(std::vector<TokenId>(static_cast<size_t>(image.length()), -1), {image});
    for (int i = 0; i < image.length(); ++i) {
      const auto at = std::get<int64_t>(key.value) + i;
      if (at >= 0 && at < std::ssize(seen) && whole[static_cast<size_t>(i)] >= 0)
        seen[static_cast<size_t>(at)] = whole[static_cast<size_t>(i)];
    }
  }
  return seen;
}

// `has_state`: the model is recurrent. `pieces`: of the encoding of an image.
inline ImageOptions random_images(RandomDraws& draws, const SchedulerOptions& options,
                                  bool has_state, int pieces) {
  const int whole = options.max_num_batched_tokens - options.max_num_seqs + 1;
  const bool sees_block = !has_state && whole >= 1 && draws.chance(40);
  const int most = sees_block ? std::min(whole, 30) : draws.draw(1, 30);
  return {.enabled = true,
          .three_axes = draws.chance(50),
          .sees_block = sees_block,
          .max_image_tokens = most,
          .kept_tokens = most + draws.draw(0, 40),
          .pieces = [pieces](const PromptImage&) { return pieces; }};
}

// Few images, so that many requests have one of them, at the same place or at another. Returns how
// many were added.
inline int add_random_images(RandomDraws& draws, const ImageOptions& options, Request& request) {
  int at = draws.chance(40) ? 0 : draws.draw(0, 12);
  const auto length = static_cast<int>(request.prompt.size());
  for (int count = draws.draw(1, 3); count > 0; --count) {
    const bool breaks = !options.three_axes && !options.sees_block && draws.chance(40);
    PromptImage image = fuzz_image(draws.draw(0, 5) + (breaks ? kFuzzBreaks : 0), at);
    if (image.rows() > options.max_image_tokens || image.end() > length) break;
    image.pixels = fake_pixels(image.identifier);
    at = image.end() + draws.draw(0, 5);
    request.images.push_back(std::move(image));
  }
  return static_cast<int>(request.images.size());
}

}  // namespace octavo

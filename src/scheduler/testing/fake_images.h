// fake_images.h - images for scheduler tests: an encoder that checks how it is used. No MLX.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scheduler/batch.h"
#include "scheduler/image_options.h"

namespace octavo {

// Stands for pixels; fake_identifier() gives back its identifier.
inline std::shared_ptr<const ImagePixels> fake_pixels(const std::string& identifier) {
  const auto name = std::make_shared<const std::string>(identifier);
  return {name, reinterpret_cast<const ImagePixels*>(name.get())};
}
inline std::string fake_identifier(const ImagePixels& pixels) {
  return reinterpret_cast<const std::string&>(pixels);
}

// What the fake model sees in a row of an image, in place of its token.
inline TokenId fake_image_token(const std::string& identifier, int row) {
  uint32_t hash = 2166136261u + static_cast<uint32_t>(row) * 2654435761u;
  for (const char c : identifier) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return 1000 + static_cast<TokenId>(hash % 1000003);
}

// The prompt as the fake model sees it.
inline std::vector<TokenId> fake_seen(std::vector<TokenId> prompt,
                                      const std::vector<PromptImage>& images) {
  for (const PromptImage& image : images) {
    const int width = image.grid_w + (image.row_breaks ? 1 : 0);
    for (int row = 0; row < image.rows(); ++row) {
      const int at = image.offset + row / image.grid_w * width + row % image.grid_w;
      prompt[static_cast<size_t>(at)] = fake_image_token(image.identifier, row);
    }
  }
  return prompt;
}

class FakeImages {
 public:
  using Tokens = std::vector<std::pair<int, TokenId>>;  // (row, what is seen there)

  // Pieces of every image; the scheduler's ImageOptions::pieces must return it.
  int pieces = 1;
  int most_tokens = 1 << 20;  // ImageOptions::kept_tokens
  bool sees_block = false;

  void check(const Batch& batch) const {
    const ImageWork& work = batch.image_work;
    OCTAVO_CHECK(batch.rows() > 0 || !work.empty());
    OCTAVO_CHECK(work.pixels == nullptr || work.encodes != 0);
  }

  void work(const ImageWork& work) {
    for (const ImageId id : work.drops) OCTAVO_CHECK(images_.erase(id) == 1);
    if (work.encodes == 0) return;
    // One at a time.
    for (const auto& [id, image] : images_)
      OCTAVO_CHECK(id == work.encodes || image.done == pieces);
    if (work.pixels) {
      OCTAVO_CHECK(used_ids_.insert(work.encodes).second);
      images_[work.encodes] = {fake_identifier(*work.pixels), 0};
    }
    Image& image = images_.at(work.encodes);
    OCTAVO_CHECK(image.done < pieces);
    if (++image.done == pieces) ++encoded;
  }

  // After work(): what the step's rows see of images.
  Tokens tokens_of(const Batch& batch) const {
    Tokens tokens;
    for (const ImageRows& part : batch.image_rows) {
      const Image& image = images_.at(part.image);
      OCTAVO_CHECK(image.done == pieces && part.count > 0);
      for (int i = 0; i < part.count; ++i)
        tokens.emplace_back(part.row + i, fake_image_token(image.identifier, part.first + i));
    }
    return tokens;
  }

  void clear() { images_.clear(); }
  size_t held() const { return images_.size(); }

  uint64_t encoded = 0;

 private:
  struct Image {
    std::string identifier;
    int done = 0;
  };
  std::map<ImageId, Image> images_;
  std::set<ImageId> used_ids_;
};

}  // namespace octavo

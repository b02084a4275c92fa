// image_store.h - decides which images are encoded, and which encoded ones are kept. No MLX. Engine
// thread only.
//
// One image is encoded at a time, one piece per step. The rows of encoded images are kept as long as
// there is room, those used last longest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scheduler/image_options.h"
#include "scheduler/image_work.h"

namespace octavo {

class ImageStore {
 public:
  // An image that a sequence needs next.
  struct Wanted {
    const PromptImage* image = nullptr;
    bool background = false;
  };

  explicit ImageStore(const ImageOptions& options)
      : pieces_(options.pieces), kept_tokens_(options.kept_tokens) {}

  // The image's rows if the steps planned so far encode all of it; else 0. A step that takes them must
  // call use().
  ImageId find(const std::string& identifier) const;
  // True if it is encoded or being encoded.
  bool has(const std::string& identifier) const { return entries_.contains(identifier); }
  // The step with number `step` takes rows of the image: it is not dropped before the next one.
  void use(const std::string& identifier, uint64_t step);

  // The work of the step with number `step`. `wanted`: what sequences need next, the most important
  // first. An image is not dropped for a less important one.
  ImageWork plan(std::span<const Wanted> wanted, uint64_t step);

  // The engine has dropped all images: StepRunner::drop().
  void forget();

  int tokens() const { return tokens_; }         // kept, or reserved by the encoding
  uint64_t encoded() const { return encoded_; }  // images since start-up
  // The image whose piece the newest plan with one has.
  const std::string& newest() const { return newest_; }

 private:
  struct Entry {
    ImageId id = 0;
    int tokens = 0;
    int pieces_left = 0;
    uint64_t last_use = 0;
    std::shared_ptr<const ImagePixels> pixels = nullptr;  // until the first piece
  };

  void drop(const std::string& identifier, ImageWork& work);
  // Drops images until `tokens` fit; not those that `keeps` names, nor those used by step `step`. False,
  // without a change, if that is not possible.
  bool make_room(int tokens, std::span<const Wanted> keeps, uint64_t step, ImageWork& work);
  // Starts the first of the wanted images that is not encoded yet, if there is room for it.
  void begin_next(std::span<const Wanted> wanted, uint64_t step, ImageWork& work);

  std::function<int(const PromptImage&)> pieces_;
  int kept_tokens_;
  std::map<std::string, Entry> entries_;  // by identifier
  std::string encoding_;                  // empty: none
  std::string newest_;
  int tokens_ = 0;
  ImageId next_id_ = 1;
  uint64_t encoded_ = 0;
};

}  // namespace octavo

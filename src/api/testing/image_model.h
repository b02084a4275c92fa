// image_model.h - a served model that takes images, without an engine, for tests.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "api/testing/test_model.h"
#include "text/testing/test_vocab.h"

namespace octavo::api {

inline constexpr TokenId kImageToken = 260;
inline constexpr TokenId kBeginToken = 261;
inline constexpr TokenId kEndToken = 262;
inline constexpr TokenId kBreakToken = 263;

// byte_level_vocab() and the tokens above: <image>, <begin>, <end>, <break>.
inline GgufVocab image_vocab() {
  GgufVocab vocab = byte_level_vocab();
  for (const char* token : {"<image>", "<begin>", "<end>", "<break>"})
    vocab.tokens.push_back(token), vocab.types.push_back(3);
  return vocab;
}

// Image tokens of 4 x 4 pixels. A Qwen processor takes 1 to 64 of them.
inline ImageSettings image_settings(ImageFamily family) {
  ImageSettings settings{.processor = {.family = family,
                                       .patch = 2,
                                       .merge = 2,
                                       .min_pixels = 16,
                                       .max_pixels = 1024,
                                       .max_tokens = 70,
                                       .max_width = 32,
                                       .max_height = 32},
                         .image_token = kImageToken,
                         .begin_token = kBeginToken,
                         .end_token = kEndToken,
                         .max_tokens = 64,
                         .max_images = 4};
  if (family == ImageFamily::kPixtral) settings.break_token = kBreakToken;
  return settings;
}

// What a template with images does: parts become their text or a placeholder.
inline std::string template_with_images(const std::string& placeholder) {
  return "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}"
         "{% else %}{% for p in m.content %}{% if p.type == 'image' %}" +
         placeholder +
         "{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
         "{% if add_generation_prompt %}>{% endif %}";
}

class ImageModel {
 public:
  explicit ImageModel(ImageFamily family = ImageFamily::kQwen, size_t memory_bytes = 1u << 20,
                      std::shared_ptr<const MediaFetcher> fetcher = nullptr) {
    const bool begins = family == ImageFamily::kGemma3;
    model_->text.tokenizer = tokenizer_of(image_vocab());
    model_->vocab = 264;
    model_->max_model_len = 400;
    model_->text.chat_template =
        ChatTemplate::from_source({.source = template_with_images(begins ? "<begin>" : "<image>")});
    model_->images = std::make_shared<const ImageReader>(image_settings(family), memory_bytes,
                                                         std::move(fetcher));
  }
  ServedModel& operator*() { return *model_; }
  ServedModel* operator->() { return &*model_; }

 private:
  TestModel model_;
};

}  // namespace octavo::api

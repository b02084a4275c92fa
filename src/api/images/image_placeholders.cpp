#include "api/images/image_placeholders.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/fields/json_values.h"

namespace octavo::api {
namespace {

// The tokens of the image from its first row to its last.
std::vector<TokenId> rows_of(const PromptImage& image, const ImageSettings& settings) {
  if (!image.row_breaks)
    return std::vector<TokenId>(static_cast<size_t>(image.rows()), settings.image_token);
  std::vector<TokenId> tokens;
  for (int line = 0; line < image.grid_h; ++line) {
    tokens.insert(tokens.end(), static_cast<size_t>(image.grid_w), settings.image_token);
    tokens.push_back(line + 1 < image.grid_h ? settings.break_token : settings.end_token);
  }
  return tokens;
}

[[noreturn]] void refuse_count(const std::string& field, size_t found, size_t images) {
  if (found < images)
    refuse(field, fmt::format("the model's chat template shows {} of the {} images; send images in "
                              "user messages",
                              found, images));
  refuse(field, fmt::format("has {} placeholders for {} images; the model's placeholder token may "
                            "not be part of a text",
                            found, images));
}

}  // namespace

std::string image_placeholder(const ImageSettings& settings, const Tokenizer& tokenizer) {
  const bool begins = settings.processor.family == ImageFamily::kGemma3;
  return tokenizer.token_text(begins ? settings.begin_token : settings.image_token);
}

size_t count_placeholders(const std::string& text, const std::string& placeholder) {
  size_t count = 0;
  if (placeholder.empty()) return count;
  for (size_t at = text.find(placeholder); at != std::string::npos;
       at = text.find(placeholder, at + placeholder.size()))
    ++count;
  return count;
}

void surround_placeholders(std::string& text, const ImageSettings& settings,
                           const Tokenizer& tokenizer) {
  if (settings.processor.family != ImageFamily::kGemma3) return;
  const std::string begin = image_placeholder(settings, tokenizer);
  const std::string whole =
      fmt::format("\n\n{}{}{}\n\n", begin, tokenizer.token_text(settings.image_token),
                  tokenizer.token_text(settings.end_token));
  std::string surrounded;
  size_t copied = 0;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, copied)) {
    surrounded.append(text, copied, at - copied).append(whole);
    copied = at + begin.size();
  }
  text = std::move(surrounded.append(text, copied));
}

std::vector<TokenId> expand_placeholders(const std::vector<TokenId>& tokens,
                                         const std::vector<PromptImage>& images,
                                         const ImageSettings& settings, const std::string& field) {
  const auto found = static_cast<size_t>(std::ranges::count(tokens, settings.image_token));
  if (found != images.size()) refuse_count(field, found, images.size());
  const bool surrounds = settings.processor.family == ImageFamily::kGemma4;
  std::vector<TokenId> expanded;
  auto image = images.begin();
  for (const TokenId token : tokens) {
    if (token != settings.image_token) {
      expanded.push_back(token);
      continue;
    }
    const std::vector<TokenId> rows = rows_of(*image++, settings);
    if (surrounds && settings.begin_token >= 0) expanded.push_back(settings.begin_token);
    expanded.insert(expanded.end(), rows.begin(), rows.end());
    if (surrounds && settings.end_token >= 0) expanded.push_back(settings.end_token);
  }
  return expanded;
}

void place_images(const std::vector<TokenId>& tokens, std::vector<PromptImage>& images,
                  const ImageSettings& settings, const std::string& field) {
  const auto mismatch = [&] {
    refuse(field, images.empty()
                      ? "has the model's placeholder token of images, but the request has no images"
                      : "does not have the placeholder tokens of the request's images");
  };
  auto at = tokens.begin();
  for (PromptImage& image : images) {
    at = std::find(at, tokens.end(), settings.image_token);
    const std::vector<TokenId> rows = rows_of(image, settings);
    if (tokens.end() - at < static_cast<ptrdiff_t>(rows.size()) ||
        !std::equal(rows.begin(), rows.end(), at))
      mismatch();
    image.offset = static_cast<int>(at - tokens.begin());
    at += static_cast<ptrdiff_t>(rows.size());
  }
  if (std::find(at, tokens.end(), settings.image_token) != tokens.end()) mismatch();
}

}  // namespace octavo::api

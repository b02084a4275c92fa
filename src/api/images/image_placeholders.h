// image_placeholders.h - the tokens that stand for images in a prompt. Any thread. No MLX.
//
// A chat template writes one placeholder for an image. Before the engine sees the prompt, it becomes
// one token for each row of the image's embeddings, in the form of the family's processor:
//   Qwen       the template has written the tokens around it
//   Gemma 4    begin, the rows, end
//   Gemma 3    a blank line, begin, the rows, end, a blank line
//   Pixtral    the rows of each line of the image and a break; the last break ends the image
#pragma once

#include <string>
#include <vector>

#include "api/images/image_settings.h"
#include "base/token_id.h"
#include "scheduler/prompt_image.h"
#include "text/tokenizer.h"

namespace octavo::api {

// How a template writes an image.
std::string image_placeholder(const ImageSettings& settings, const Tokenizer& tokenizer);
size_t count_placeholders(const std::string& text, const std::string& placeholder);

// Adds what surrounds an image in the text (Gemma 3), so that blank lines become the tokens that they
// are beside their neighbours. Before the text is encoded.
void surround_placeholders(std::string& text, const ImageSettings& settings,
                           const Tokenizer& tokenizer);

// The tokens with all rows of each image. Throws RequestError(400) naming `field` unless there is one
// placeholder for each image.
std::vector<TokenId> expand_placeholders(const std::vector<TokenId>& tokens,
                                         const std::vector<PromptImage>& images,
                                         const ImageSettings& settings, const std::string& field);

// Sets the images' offsets. Throws RequestError(400) naming `field` if the prompt has other
// placeholders than those of the images, in their order.
void place_images(const std::vector<TokenId>& tokens, std::vector<PromptImage>& images,
                  const ImageSettings& settings, const std::string& field);

}  // namespace octavo::api

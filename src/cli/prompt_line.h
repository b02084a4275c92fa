// prompt_line.h - reads a file of prompts: one JSON object per line with a prompt and the settings
// that differ from the defaults, with vLLM's names. Any thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "llm/llm.h"

namespace octavo {

struct PromptLine {
  nlohmann::ordered_json id = {};  // echoed in the output; null if none was given
  TextRequest request = {};
};

// Parses one line. Fields that are missing or null come from `defaults`, whose prompt is ignored.
// Throws RequestError with the field's name if a field is unknown, repeated or of the wrong type,
// or if there is no prompt. The engine checks the values.
PromptLine parse_prompt_line(std::string_view text, const TextRequest& defaults);

// Reads all non-blank lines of a file; "-" is stdin. Calls `defaults` once per line. Throws
// SetupError with the line number and the field.
std::vector<PromptLine> read_prompt_file(const std::string& path,
                                         const std::function<TextRequest()>& defaults);

// The content of a message: the text, or a list of parts with images [first, first + count) of
// TextRequest::images before it.
nlohmann::ordered_json content_with_images(const std::string& text, size_t first, size_t count);

// Turns a plain prompt into a chat with the optional `system` message and one user message, which has
// the request's images before its text. Does nothing if the request has messages or token ids.
void put_into_chat(TextRequest& request, const std::string& system);

}  // namespace octavo

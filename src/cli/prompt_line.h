// prompt_line.h - prompts from a file: on each line a JSON object with a prompt and what differs
// from the defaults, in vLLM's names. Any thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "llm/llm.h"

namespace octavo {

struct PromptLine {
  nlohmann::ordered_json id = {};  // as given, to be echoed; null: none
  TextRequest request = {};
};

// Reads a line over `defaults`, whose prompt is ignored. A field that is null counts as not given.
// Throws RequestError naming the field: an unknown or repeated one, one of the wrong type, or no
// prompt. Whether the values can be served is for the engine to say.
PromptLine parse_prompt_line(std::string_view text, const TextRequest& defaults);

// Every line of a file that is not blank; "-" is stdin. `defaults` is asked once for each. Throws
// SetupError naming the line and the field.
std::vector<PromptLine> read_prompt_file(const std::string& path,
                                         const std::function<TextRequest()>& defaults);

// Makes a plain prompt the user's message behind a system message, which may be empty. Leaves
// messages and token ids as they are.
void put_into_chat(TextRequest& request, const std::string& system);

}  // namespace octavo

// chat_template_source.h - finds a model's chat template and the special tokens it refers to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace octavo {

struct ChatTemplateSource {
  std::string source;
  std::optional<std::string> tool_use_source = {};  // used instead when a request has tools
  // Empty: the variable is undefined in the template.
  std::string bos_token = {}, eos_token = {}, unk_token = {}, pad_token = {};
};

// Reads the template from chat_template.jinja, else from tokenizer_config.json, and the tokens from
// tokenizer_config.json, then special_tokens_map.json. Returns nullopt if the folder has no
// template. Throws SetupError if a file exists but cannot be read.
std::optional<ChatTemplateSource> find_chat_template(const std::filesystem::path& model_folder);

// The special tokens alone, with an empty template.
ChatTemplateSource read_template_tokens(const std::filesystem::path& model_folder);

}  // namespace octavo

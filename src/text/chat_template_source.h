// chat_template_source.h - where a model keeps its chat template and the tokens it is written with.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace octavo {

struct ChatTemplateSource {
  std::string source;
  std::optional<std::string> tool_use_source = {};  // used instead when a request has tools
  // Empty: the template sees no such variable.
  std::string bos_token = {}, eos_token = {}, unk_token = {}, pad_token = {};
};

// From chat_template.jinja, else from tokenizer_config.json; the tokens from tokenizer_config.json,
// then special_tokens_map.json. Nothing when the folder has no template. Throws SetupError for a
// file that is there and cannot be read.
std::optional<ChatTemplateSource> find_chat_template(const std::filesystem::path& model_folder);

}  // namespace octavo

#include "text/chat_template_source.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileBytes = 64u << 20;

// Returns an empty object if the file does not exist.
nlohmann::json read_object(const fs::path& path) {
  if (!fs::exists(path)) return nlohmann::json::object();
  nlohmann::json value = nlohmann::json::parse(read_text_file(path, kMaxFileBytes), nullptr,
                                               /*allow_exceptions=*/false);
  if (!value.is_object()) throw SetupError(path.string() + ": not a JSON object");
  return value;
}

// A token is either "text" or {"content": "text", ...}.
std::string token_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return "";
}

std::string special_token(const char* name, const nlohmann::json& config,
                          const nlohmann::json& map) {
  std::string text = token_text(config.value(name, nlohmann::json()));
  return text.empty() ? token_text(map.value(name, nlohmann::json())) : text;
}

void take_tokens(const nlohmann::json& config, const nlohmann::json& map,
                 ChatTemplateSource& found) {
  found.bos_token = special_token("bos_token", config, map);
  found.eos_token = special_token("eos_token", config, map);
  found.unk_token = special_token("unk_token", config, map);
  found.pad_token = special_token("pad_token", config, map);
}

// The config's "chat_template": one template, or a list of named ones.
void take_templates(const nlohmann::json& value, ChatTemplateSource& found) {
  if (value.is_string()) found.source = value.get<std::string>();
  if (!value.is_array()) return;
  for (const nlohmann::json& entry : value) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template") ||
        !entry["name"].is_string() || !entry["template"].is_string()) {
      continue;
    }
    const auto name = entry["name"].get<std::string>();
    if (name == "default") found.source = entry["template"].get<std::string>();
    if (name == "tool_use") found.tool_use_source = entry["template"].get<std::string>();
  }
}

}  // namespace

std::optional<ChatTemplateSource> find_chat_template(const fs::path& model_folder) {
  const nlohmann::json config = read_object(model_folder / "tokenizer_config.json");
  const nlohmann::json map = read_object(model_folder / "special_tokens_map.json");
  ChatTemplateSource found;
  if (const fs::path file = model_folder / "chat_template.jinja"; fs::exists(file)) {
    found.source = read_text_file(file, kMaxFileBytes);
  } else {
    take_templates(config.value("chat_template", nlohmann::json()), found);
  }
  if (found.source.empty() && found.tool_use_source) found.source = *found.tool_use_source;
  if (found.source.empty()) return std::nullopt;
  take_tokens(config, map, found);
  return found;
}

ChatTemplateSource read_template_tokens(const fs::path& model_folder) {
  ChatTemplateSource found;
  take_tokens(read_object(model_folder / "tokenizer_config.json"),
              read_object(model_folder / "special_tokens_map.json"), found);
  return found;
}

}  // namespace octavo

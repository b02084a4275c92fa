// ollama_request.h - the bodies of /api/chat and /api/generate, Ollama's own API.
#pragma once

#include <optional>
#include <string>

#include "api/openai/chat_translation.h"

namespace octavo::api {

struct OllamaRequest : ChatTranslation {
  std::string model = {};
  Json messages = {};       // /api/chat
  std::string prompt = {};  // these are /api/generate's
  Json prompt_images = {};
  std::string system = {};
  bool raw = false;
  Json think = {};  // null, a boolean or a level
  bool unloads = false;
  std::optional<int> num_ctx = {};
  std::optional<int> repeat_last_n = {};
};

struct OllamaJob : GenerationJob {
  std::string model = {};  // as requested
  // Nothing to generate: "load" or "unload".
  const char* loads = nullptr;
};

const FieldTable<OllamaRequest>& ollama_chat_fields();
const FieldTable<OllamaRequest>& ollama_generate_fields();

// Text worker: as prepare_chat. Throws RequestError.
OllamaJob prepare_ollama_chat(const Json& body, const ServedModel& model,
                              const Preparation& preparation = {});
OllamaJob prepare_ollama_generate(const Json& body, const ServedModel& model,
                                  const Preparation& preparation = {});

}  // namespace octavo::api

// llm.h - text in, text out: joins a model's text side and its engine. Shows no MLX. One thread
// owns it.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "llm/model_text.h"

namespace octavo {

struct TextRequest {
  std::string prompt;               // used when there are no messages
  nlohmann::ordered_json messages;  // null, or an array for the chat template
  RenderOptions render;
  SamplingParams sampling;
  int max_tokens = 512;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  // If there is one: asked before each step, true ends the answer.
  std::function<bool()> cancelled = nullptr;
};

struct TextAnswer {
  std::string text;
  std::vector<TokenId> prompt_tokens;
  Generation generation;
  std::string stop_string;  // the stop string that ended it, if one did
};

class Llm {
 public:
  Llm(const std::filesystem::path& path, const EngineOptions& options, Engine::Progress progress);

  // Called with each piece of text as it becomes certain; false ends the answer.
  using OnText = std::function<bool(std::string_view)>;

  // Throws RequestError when the request cannot be served as asked.
  TextAnswer generate(const TextRequest& request, const OnText& on_text);

  // The ids a request's prompt becomes.
  std::vector<TokenId> encode_prompt(const TextRequest& request) const;

  bool can_chat() const { return text_.chat_template != nullptr; }
  const Engine& engine() const { return engine_; }
  // Resident memory just before the weights were read and just after.
  uint64_t resident_before_load() const { return resident_before_load_; }
  uint64_t resident_after_load() const { return resident_after_load_; }

 private:
  Checkpoint checkpoint_;
  ModelText text_;
  uint64_t resident_before_load_;
  Engine engine_;
  uint64_t resident_after_load_;
};

}  // namespace octavo

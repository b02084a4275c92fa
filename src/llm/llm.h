// llm.h - text in, text out: joins a model's text side and its engine. Shows no MLX. Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "generation/model_text.h"
#include "generation/output_text.h"

namespace octavo {

struct TextRequest {
  std::string prompt = {};               // used when there are neither messages nor ids
  nlohmann::ordered_json messages = {};  // null, or an array for the chat template
  std::vector<TokenId> prompt_token_ids = {};
  RenderOptions render = {};
  // All but the prompt, which is made from the above.
  Request engine = {.prompt = {}, .max_tokens = 512};
  OutputTextOptions text = {};
  // If there is one: asked every few milliseconds by generate(), true ends the answer.
  std::function<bool()> cancelled = nullptr;
};

struct Generation {
  std::vector<TokenId> tokens = {};  // a stop token included; empty when cancelled before the first
  FinishReason finish_reason = FinishReason::kLength;
  int cached_tokens = 0;       // prompt tokens whose K and V were already there
  double prefill_seconds = 0;  // from the question to the first token
  double decode_seconds = 0;   // from there to the last
  std::vector<TokenLogprobs> logprobs = {};
  std::vector<TokenLogprobs> prompt_logprobs = {};
};

struct TextAnswer {
  std::string text = {};
  std::vector<TokenId> prompt_tokens = {};
  Generation generation = {};
  std::string stop_string = {};            // the stop string that ended it, if one did
  std::optional<TokenId> stop_token = {};  // or the one of Request::stop_token_ids
  std::string error = {};                  // with FinishReason::kError
};

class Llm {
 public:
  Llm(const std::filesystem::path& path, const EngineOptions& options, Engine::Progress progress);

  // Called with each piece of text as it becomes certain; false ends the answer.
  using OnText = std::function<bool(std::string_view)>;
  // Called with a request's place among those asked and all its choices, in order.
  using OnAnswers = std::function<void(size_t request, std::vector<TextAnswer> choices)>;

  // The first choice of one request, as it comes. Throws RequestError when the request cannot be
  // served as asked.
  TextAnswer generate(const TextRequest& request, const OnText& on_text);

  // Many requests at once. Hands over the answers on this thread, each request's when the last of
  // its choices ends. A request that cannot be served as asked has one answer with
  // FinishReason::kError.
  void generate_all(const std::vector<TextRequest>& requests, const OnAnswers& on_answers);

  // The ids a request's prompt becomes.
  std::vector<TokenId> encode_prompt(const TextRequest& request) const;

  const ModelText& text() const { return text_; }
  bool can_chat() const { return text_.chat_template != nullptr; }
  Engine& engine() { return engine_; }
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

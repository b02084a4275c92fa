// llm.h - generates text from text: joins a model's tokenizer and template with its engine. Shows
// no MLX. Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/images/image_reader.h"
#include "engine/engine.h"
#include "generation/model_text.h"
#include "generation/output_text.h"

namespace octavo {

struct TextRequest {
  std::string prompt = {};  // used if there are neither messages nor ids
  // Null, or an array for the chat template. With images, in the form of OpenAI's API.
  nlohmann::ordered_json messages = {};
  std::vector<api::ImageSource> images = {};  // those that messages name by api::translated_image()
  std::vector<TokenId> prompt_token_ids = {};
  RenderOptions render = {};
  // Without the prompt, which is made from the fields above.
  Request engine = {.prompt = {}, .max_tokens = 512};
  OutputTextOptions text = {};
  // If set, generate() polls it every few milliseconds; true ends generation.
  std::function<bool()> cancelled = nullptr;
};

struct Generation {
  std::vector<TokenId> tokens =
      {};  // including a stop token; empty if cancelled before the first token
  FinishReason finish_reason = FinishReason::kLength;
  int cached_tokens = 0;       // prompt tokens from the prefix cache
  double prefill_seconds = 0;  // from submission to the first token
  double decode_seconds = 0;   // from there to the last
  std::vector<TokenLogprobs> logprobs = {};
  std::vector<TokenLogprobs> prompt_logprobs = {};
};

struct TextAnswer {
  std::string text = {};
  std::vector<TokenId> prompt_tokens = {};
  Generation generation = {};
  std::string stop_string = {};            // the stop string that ended it, if any
  std::optional<TokenId> stop_token = {};  // or the one of Request::stop_token_ids
  std::string error = {};                  // with FinishReason::kError
};

struct LlmPrompt {
  std::vector<TokenId> tokens = {};
  std::vector<PromptImage> images = {};
};

class Llm {
 public:
  // `chat_template` is a file that replaces the model's own template; empty: keep it.
  Llm(const std::filesystem::path& path, const EngineOptions& options, Engine::Progress progress,
      const std::filesystem::path& chat_template = {});

  // Called with each piece of final text; return false to end generation.
  using OnText = std::function<bool(std::string_view)>;
  // Called with the index of a request and all its choices, in order.
  using OnAnswers = std::function<void(size_t request, std::vector<TextAnswer> choices)>;

  // Generates the first choice of one request. Throws RequestError if the request is invalid.
  TextAnswer generate(const TextRequest& request, const OnText& on_text);

  // Generates many requests at once. Calls back on this thread, once per request when its last
  // choice ends. An invalid request gets one answer with FinishReason::kError.
  void generate_all(const std::vector<TextRequest>& requests, const OnAnswers& on_answers);

  // The prompt of a request. Throws RequestError.
  LlmPrompt read_prompt(const TextRequest& request) const;
  std::vector<TokenId> encode_prompt(const TextRequest& request) const {
    return read_prompt(request).tokens;
  }
  // --limit-mm-per-prompt. Before the first request.
  void limit_images(int max_images);
  // Empty: the model takes images. Otherwise the reason why not.
  const std::string& images_refused() const { return engine_.images_refused(); }

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const ModelText& text() const { return text_; }
  bool can_chat() const { return text_.chat_template != nullptr; }
  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  // Resident memory before and after the weights were read.
  uint64_t resident_before_load() const { return resident_before_load_; }
  uint64_t resident_after_load() const { return resident_after_load_; }

 private:
  LlmPrompt read_chat_with_images(const TextRequest& request) const;

  Checkpoint checkpoint_;
  ModelText text_;
  uint64_t resident_before_load_;
  Engine engine_;
  std::shared_ptr<const api::ImageReader> images_;  // null: the model takes none
  uint64_t resident_after_load_;
};

}  // namespace octavo

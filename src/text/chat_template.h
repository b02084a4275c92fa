// chat_template.h - a model's chat template: messages to the prompt's text, as transformers'
// apply_chat_template renders it. Immutable; one object serves every thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template_source.h"

struct octavo_template;

namespace octavo {

// What one rendering may take. Steps grow with the request, so that a template that works for
// nothing (a list grown in a loop costs its square) ends in seconds.
inline constexpr uint64_t kTemplateSteps = 200'000;
inline constexpr uint64_t kTemplateStepsPerValue = 1'000;  // of the messages, tools and arguments
inline constexpr uint64_t kTemplateOutputBytes = 32u << 20;
inline constexpr uint64_t kTemplateStackBytes = 256u
                                                << 20;  // reserved, touched only as far as used
inline constexpr size_t kTemplateSourceBytes = 1u << 20;
inline constexpr int kMessageDepth = 100;  // nesting of messages, tools and arguments

struct RenderOptions {
  nlohmann::ordered_json tools = nullptr;      // null: none
  nlohmann::ordered_json documents = nullptr;  // null: none
  std::optional<bool> enable_thinking = std::nullopt;
  bool add_generation_prompt = true;
  bool continue_final_message =
      false;  // leave the last message open; excludes add_generation_prompt
  nlohmann::ordered_json extra = nullptr;  // chat_template_kwargs: an object or null
};

class ChatTemplate {
 public:
  // Throws SetupError when the template does not parse or is too large.
  static std::shared_ptr<const ChatTemplate> from_source(const ChatTemplateSource& source);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // `messages` is an array of objects. Throws RequestError(400, "messages") when the template
  // refuses them or they do not fit it, and names `tools`, `chat_template_kwargs` or
  // `continue_final_message` when those are wrong.
  std::string render(const nlohmann::ordered_json& messages, const RenderOptions& options) const;

  const ChatTemplateSource& source() const { return source_; }

 private:
  class Compiled;
  explicit ChatTemplate(const ChatTemplateSource& source);

  ChatTemplateSource source_;
  std::unique_ptr<const Compiled> chat_;
  std::unique_ptr<const Compiled> tool_use_;  // null: the same template serves requests with tools
};

}  // namespace octavo

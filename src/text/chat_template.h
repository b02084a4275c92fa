// chat_template.h - renders messages to the prompt's text with the model's chat template, as
// transformers' apply_chat_template does. Immutable; any thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "text/chat_template_source.h"

struct octavo_template;

namespace octavo {

class TextHelpers;

// Limits of one rendering. The step limit grows with the request, so large requests render, while a
// template with quadratic cost (such as a list grown in a loop) still fails within seconds. The limits
// on the text and lists that a template makes are in rust/src/template_budget.rs.
inline constexpr uint64_t kTemplateSteps = 400'000;
inline constexpr uint64_t kTemplateStepsPerValue = 2'000;  // per JSON value of the request
inline constexpr uint64_t kTemplateMaxSteps = 50'000'000;
inline constexpr uint64_t kTemplateOutputBytes = 32u << 20;
inline constexpr uint64_t kTemplateStackBytes = 256u << 20;  // reserved; committed only when used
inline constexpr size_t kTemplateSourceBytes = 1u << 20;
inline constexpr int kMessageDepth = 100;  // nesting of messages, tools and arguments

struct RenderOptions {
  nlohmann::ordered_json tools = nullptr;      // null: none
  nlohmann::ordered_json documents = nullptr;  // null: none
  std::optional<bool> enable_thinking = std::nullopt;
  bool add_generation_prompt = true;
  // Leave the last message open; excludes add_generation_prompt.
  bool continue_final_message = false;
  nlohmann::ordered_json extra = nullptr;  // chat_template_kwargs: an object or null
  std::stop_token stop = {};               // requested: RequestError(503) soon after
};

class ChatTemplate {
 public:
  // Throws SetupError if the template does not parse or is too large.
  static std::shared_ptr<const ChatTemplate> from_source(const ChatTemplateSource& source);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // `messages` is an array of objects. Throws RequestError(400, "messages") if the template rejects
  // them or cannot render them; the error names `tools`, `chat_template_kwargs` or
  // `continue_final_message` if one of those is invalid.
  std::string render(const nlohmann::ordered_json& messages, const RenderOptions& options) const;

  // The same, rendering in helper processes (make_template_helpers): a template comes from a model's
  // file, and running out of memory while it is rendered ends the process.
  std::shared_ptr<const ChatTemplate> with_helpers(std::shared_ptr<TextHelpers> helpers) const;

  // Renders in this process. variables: all of the template's, as JSON.
  std::string render_variables(bool tool_use, std::string_view variables, uint64_t steps,
                               const std::stop_token& stop = {}) const;

  const ChatTemplateSource& source() const { return source_; }
  // False while it needs helpers that cannot be started.
  bool helpers_available() const;

 private:
  class Compiled;
  explicit ChatTemplate(const ChatTemplateSource& source);
  ChatTemplate(const ChatTemplate& other, std::shared_ptr<TextHelpers> helpers);
  std::string render_in_helper(bool tool_use, std::string_view variables, uint64_t steps,
                               const std::stop_token& stop) const;

  ChatTemplateSource source_;
  std::shared_ptr<const Compiled> chat_;
  std::shared_ptr<const Compiled> tool_use_;  // null: chat_ also renders requests with tools
  std::shared_ptr<TextHelpers> helpers_;      // null: renders in this process
};

}  // namespace octavo

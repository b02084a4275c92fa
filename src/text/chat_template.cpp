#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "base/rust_border.h"
#include "base/units.h"
#include "text/chat_messages.h"
#include "text/helper_jobs.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr HelperLimits kTemplateLimits{.processor_time = std::chrono::seconds(3),
                                       .elapsed = std::chrono::seconds(20)};
// The Rust library reads the flag as an atomic bool.
static_assert(sizeof(std::atomic<bool>) == sizeof(bool) && std::atomic<bool>::is_always_lock_free);

void check_depth(const char* param, const ordered_json& value) {
  if (!nests_within(value, kMessageDepth)) {
    throw RequestError(400, param, fmt::format("nested deeper than {} levels", kMessageDepth));
  }
}

void check(const ordered_json& messages, const RenderOptions& options) {
  if (!messages.is_array()) throw RequestError(400, "messages", "must be a list");
  check_depth("messages", messages);
  for (const ordered_json& message : messages) {
    if (!message.is_object()) throw RequestError(400, "messages", "each message must be an object");
  }
  check_depth("tools", options.tools);
  check_depth("documents", options.documents);
  check_depth("chat_template_kwargs", options.extra);
  if (!options.extra.is_null() && !options.extra.is_object()) {
    throw RequestError(400, "chat_template_kwargs", "must be an object");
  }
  if (options.continue_final_message && options.add_generation_prompt) {
    throw RequestError(400, "continue_final_message",
                       "cannot be combined with add_generation_prompt");
  }
}

}  // namespace

// One compiled template.
class ChatTemplate::Compiled {
 public:
  explicit Compiled(const std::string& source) {
    if (source.size() > kTemplateSourceBytes) {
      throw SetupError(fmt::format("the chat template is {}; at most {} are allowed",
                                   format_bytes(source.size()),
                                   format_bytes(kTemplateSourceBytes)));
    }
    const std::string valid = replace_invalid_utf8(source);
    const octavo_template_limits limits{.output_bytes = kTemplateOutputBytes,
                                        .stack_bytes = kTemplateStackBytes};
    RustText error;
    if (octavo_template_new(valid.data(), valid.size(), limits, &handle_, error.out()) !=
        OCTAVO_RUST_OK) {
      throw SetupError(fmt::format("the chat template cannot be used: {}", error.view()));
    }
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { octavo_template_free(handle_); }

  // context: the template's variables, as JSON.
  std::string render(std::string_view context, uint64_t steps, const std::stop_token& stop) const {
    std::atomic<bool> stopped = false;
    const std::stop_callback on_stop(stop, [&stopped] { stopped = true; });
    RustText text;
    RustText error;
    const octavo_rust_status status =
        octavo_template_render(handle_, context.data(), context.size(), steps,
                               reinterpret_cast<const bool*>(&stopped), text.out(), error.out());
    switch (status) {
      case OCTAVO_RUST_OK:
        return std::string(text.view());
      case OCTAVO_RUST_RAISED:
        throw RequestError(400, "messages", std::string(error.view()));
      case OCTAVO_RUST_STOPPED:
        throw RequestError(503, "", "the request was stopped while its chat template was rendered");
      default:
        throw RequestError(
            status == OCTAVO_RUST_BUG ? 500 : 400, "messages",
            fmt::format("the chat template cannot render the messages: {}", error.view()));
    }
  }

 private:
  octavo_template* handle_ = nullptr;
};

ChatTemplate::ChatTemplate(const ChatTemplateSource& source)
    : source_(source), chat_(std::make_shared<Compiled>(source.source)) {
  if (source.tool_use_source) tool_use_ = std::make_shared<Compiled>(*source.tool_use_source);
}

ChatTemplate::ChatTemplate(const ChatTemplate& other, std::shared_ptr<TextHelpers> helpers)
    : source_(other.source_),
      chat_(other.chat_),
      tool_use_(other.tool_use_),
      helpers_(std::move(helpers)) {}

ChatTemplate::~ChatTemplate() = default;

std::shared_ptr<const ChatTemplate> ChatTemplate::from_source(const ChatTemplateSource& source) {
  return std::shared_ptr<const ChatTemplate>(new ChatTemplate(source));
}

std::shared_ptr<const ChatTemplate> ChatTemplate::with_helpers(
    std::shared_ptr<TextHelpers> helpers) const {
  return std::shared_ptr<const ChatTemplate>(new ChatTemplate(*this, std::move(helpers)));
}

bool ChatTemplate::helpers_available() const { return !helpers_ || helpers_->available(); }

std::string ChatTemplate::render_variables(bool tool_use, std::string_view variables,
                                           uint64_t steps, const std::stop_token& stop) const {
  return (tool_use_ && tool_use ? *tool_use_ : *chat_).render(variables, steps, stop);
}

std::string ChatTemplate::render_in_helper(bool tool_use, std::string_view variables,
                                           uint64_t steps, const std::stop_token& stop) const {
  try {
    return helpers_->run(pack_template_job(tool_use, variables, steps), kTemplateLimits, stop);
  } catch (const HelperFailure& failure) {
    switch (failure.reason()) {
      case HelperFailure::Reason::kTooLong:
        throw RequestError(400, "messages",
                           fmt::format("the chat template took more than {} ms to render them",
                                       kTemplateLimits.processor_time.count()));
      case HelperFailure::Reason::kDied:
        throw RequestError(400, "messages",
                           "rendering them with the chat template took too much memory");
      case HelperFailure::Reason::kUnavailable:
      case HelperFailure::Reason::kStopped:
        break;
    }
    throw RequestError(503, "", failure.what());
  }
}

std::string ChatTemplate::render(const ordered_json& messages, const RenderOptions& options) const {
  check(messages, options);
  ordered_json context = ordered_json::object();
  const auto set_token = [&](const char* name, const std::string& token) {
    if (!token.empty()) context[name] = token;
  };
  set_token("bos_token", source_.bos_token);
  set_token("eos_token", source_.eos_token);
  set_token("unk_token", source_.unk_token);
  set_token("pad_token", source_.pad_token);
  if (options.enable_thinking) context["enable_thinking"] = *options.enable_thinking;
  if (options.extra.is_object()) context.update(options.extra);

  ordered_json& chat = context["messages"];
  chat = messages;
  alias_reasoning(chat);
  FinalMessage final_message;
  if (options.continue_final_message) final_message.mark(chat);
  context["tools"] = options.tools;
  context["documents"] = options.documents;
  context["add_generation_prompt"] = options.add_generation_prompt;

  const bool tool_use = !options.tools.is_null();
  const std::string variables =
      context.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  const uint64_t steps =
      std::min(kTemplateSteps + kTemplateStepsPerValue * count_values(context), kTemplateMaxSteps);
  std::string text = helpers_ ? render_in_helper(tool_use, variables, steps, options.stop)
                              : render_variables(tool_use, variables, steps, options.stop);
  return options.continue_final_message ? final_message.cut(std::move(text)) : text;
}

}  // namespace octavo

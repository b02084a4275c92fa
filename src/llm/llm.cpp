#include "llm/llm.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "api/images/image_placeholders.h"
#include "api/openai/chat_images.h"
#include "api/openai/chat_input.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "llm/load_model_text.h"
#include "llm/make_image_reader.h"
#include "llm/output_builder.h"

namespace octavo {
namespace {

// A queue of updates from the engine thread to the calling thread.
class Mailbox {
 public:
  void put(size_t request, Update update) {
    const std::lock_guard lock(mutex_);
    updates_.emplace_back(request, std::move(update));
    filled_.notify_one();
  }
  // Nullopt on timeout.
  std::optional<std::pair<size_t, Update>> take(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!filled_.wait_for(lock, timeout, [&] { return !updates_.empty(); })) return std::nullopt;
    auto update = std::move(updates_.front());
    updates_.pop_front();
    return update;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::pair<size_t, Update>> updates_;
};

Request engine_request(const TextRequest& request, const LlmPrompt& prompt) {
  Request asked = request.engine;
  asked.prompt = prompt.tokens;
  asked.images = prompt.images;
  return asked;
}

bool has_images(const TextRequest& request) {
  if (!request.images.empty()) return true;
  for (const auto& message : request.messages) {
    if (!message.is_object() || !message.contains("content")) continue;
    const auto& content = message["content"];
    if (!content.is_array()) continue;
    for (const auto& part : content)
      if (part.is_object() && part.value("type", nlohmann::ordered_json()) == "image_url")
        return true;
  }
  return false;
}

// Every token id must mean the same in the draft model.
void check_draft_vocabulary(const Tokenizer& own, const SpeculativeConfig& config) {
  if (config.method != SpeculativeMethod::kDraftModel) return;
  const ModelText draft = load_model_text(Checkpoint::open(config.model));
  for (TokenId id = 0; id < std::max(own.vocab_size(), draft.tokenizer->vocab_size()); ++id) {
    if (own.token_text(id) == draft.tokenizer->token_text(id)) continue;
    throw SetupError(fmt::format(
        "--speculative-config: token {} is '{}' in the model and '{}' in {}; choose a draft model "
        "with the same tokenizer",
        id, own.token_text(id), draft.tokenizer->token_text(id), config.model));
  }
}

ModelText checked_text(const Checkpoint& checkpoint, const SpeculativeConfig& speculation,
                       const std::filesystem::path& chat_template) {
  ModelText text = load_model_text(checkpoint);
  if (!chat_template.empty()) use_chat_template(text, chat_template, checkpoint);
  check_draft_vocabulary(*text.tokenizer, speculation);
  return text;
}

TextAnswer refused(const RequestError& error) {
  TextAnswer answer;
  answer.generation.finish_reason = FinishReason::kError;
  answer.error = error.what();
  return answer;
}

}  // namespace

Llm::Llm(const std::filesystem::path& path, const EngineOptions& options, Engine::Progress progress,
         const std::filesystem::path& chat_template)
    : checkpoint_(Checkpoint::open(path)),
      text_(checked_text(checkpoint_, options.speculation, chat_template)),
      resident_before_load_(resident_bytes()),
      engine_(checkpoint_, options, std::move(progress)),
      images_(make_image_reader(engine_)),
      resident_after_load_(resident_bytes()) {}

void Llm::limit_images(int max_images) {
  images_ = make_image_reader(engine_, {.max_images = max_images});
}

LlmPrompt Llm::read_prompt(const TextRequest& request) const {
  if (!request.prompt_token_ids.empty()) return {.tokens = request.prompt_token_ids};
  if (request.messages.is_null()) return {.tokens = text_.tokenizer->encode(request.prompt, true)};
  if (!can_chat()) {
    throw RequestError(400, "messages",
                       "this model has no chat template; send a plain prompt instead");
  }
  if (has_images(request)) return read_chat_with_images(request);
  // The template itself writes the special tokens.
  return {.tokens = text_.tokenizer->encode(
              text_.chat_template->render(request.messages, request.render), false)};
}

LlmPrompt Llm::read_chat_with_images(const TextRequest& request) const {
  std::vector<api::ImageSource> sources = request.images;
  const api::Json messages = api::read_messages(request.messages, sources);
  if (!images_) throw RequestError(400, sources.front().field, engine_.images_refused());
  const api::ImageSettings& settings = images_->settings();
  const std::string text = api::render_with_images(
      messages, sources.size(), settings, *text_.tokenizer,
      [&](const api::Json& shown) { return text_.chat_template->render(shown, request.render); });
  LlmPrompt prompt{.images = images_->read(sources, {})};
  prompt.tokens = api::expand_placeholders(text_.tokenizer->encode(text, false), prompt.images,
                                           settings, "messages");
  api::place_images(prompt.tokens, prompt.images, settings, "messages");
  return prompt;
}

TextAnswer Llm::generate(const TextRequest& request, const OnText& on_text) {
  const auto mailbox = std::make_shared<Mailbox>();
  const LlmPrompt prompt = read_prompt(request);
  OutputBuilder builder(text_.tokenizer, request, prompt.tokens);
  Request asked = engine_request(request, prompt);
  asked.n = 1;
  const RequestId id = engine_.submit(
      std::move(asked), [mailbox](Update update) { mailbox->put(0, std::move(update)); });
  bool unwanted = false;
  while (!builder.done()) {
    auto update = mailbox->take(std::chrono::milliseconds(20));
    if (!unwanted && request.cancelled && request.cancelled()) {
      unwanted = true;
      engine_.abort(id);
    }
    if (!update) continue;
    // Tokens drawn after the cancellation are dropped.
    if (unwanted && !update->second.finish) continue;
    const OutputText::Delta delta = builder.take(std::move(update->second));
    const bool wanted = delta.text.empty() || unwanted || on_text(delta.text);
    if (!delta.stop_string.empty() || (!wanted && !delta.finish)) engine_.abort(id);
    if (!wanted && !delta.finish) unwanted = true;
  }
  return std::move(builder.answer());
}

void Llm::generate_all(const std::vector<TextRequest>& requests, const OnAnswers& on_answers) {
  const auto mailbox = std::make_shared<Mailbox>();
  std::vector<std::vector<OutputBuilder>> builders(requests.size());
  std::vector<RequestId> ids(requests.size(), 0);
  size_t asked = 0;
  size_t answered = 0;
  // Enough for the scheduler to choose from.
  constexpr size_t kMostOpen = 512;
  const auto hand_over = [&](size_t i, std::vector<TextAnswer> choices) {
    ++answered;
    on_answers(i, std::move(choices));
  };
  // False if the request has to wait for the memory that open ones hold.
  const auto ask = [&](size_t i) {
    try {
      const LlmPrompt prompt = read_prompt(requests[i]);
      Request request = engine_request(requests[i], prompt);
      for (int choice = 0; choice < request.n; ++choice)
        builders[i].emplace_back(text_.tokenizer, requests[i], prompt.tokens);
      ids[i] = engine_.submit(std::move(request),
                              [mailbox, i](Update update) { mailbox->put(i, std::move(update)); });
    } catch (const RequestError& error) {
      builders[i].clear();
      // The engine may hold the images of a request for a moment after its answer.
      const bool is_held = images_ && images_->memory_taken() > 0;
      if (error.status() == 429 && (asked > answered || is_held)) return false;
      hand_over(i, {refused(error)});
    }
    return true;
  };
  // `answered` when a request had to wait. It is tried again after the next answer or a pause, not after
  // every token, because reading images is slow.
  std::optional<size_t> waits_at;
  const auto may_ask = [&] {
    return asked < requests.size() && asked - answered < kMostOpen && waits_at != answered;
  };
  while (answered < requests.size()) {
    while (may_ask()) {
      if (ask(asked)) {
        ++asked;
      } else {
        waits_at = answered;
      }
    }
    auto update = mailbox->take(std::chrono::milliseconds(100));
    if (!update) {
      waits_at.reset();
      continue;
    }
    const size_t i = update->first;
    auto& choices = builders[i];
    if (choices.empty()) continue;  // updates after a stop string
    OutputBuilder& builder = choices[static_cast<size_t>(update->second.choice)];
    const int choice = update->second.choice;
    const OutputText::Delta delta = builder.take(std::move(update->second));
    if (!delta.stop_string.empty()) engine_.abort(ids[i], choice);
    if (!std::ranges::all_of(choices, &OutputBuilder::done)) continue;
    std::vector<TextAnswer> answers;
    for (OutputBuilder& done : choices) answers.push_back(std::move(done.answer()));
    choices.clear();
    hand_over(i, std::move(answers));
  }
}

}  // namespace octavo

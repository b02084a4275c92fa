#include "llm/llm.h"

#include <utility>

#include "base/error.h"
#include "base/system_memory.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace octavo {

Llm::Llm(const std::filesystem::path& path, const EngineOptions& options, Engine::Progress progress)
    : checkpoint_(Checkpoint::open(path)),
      text_(load_model_text(checkpoint_)),
      resident_before_load_(resident_bytes()),
      engine_(checkpoint_, options, std::move(progress)),
      resident_after_load_(resident_bytes()) {}

std::vector<TokenId> Llm::encode_prompt(const TextRequest& request) const {
  if (request.messages.is_null()) return text_.tokenizer->encode(request.prompt, true);
  if (!can_chat()) {
    throw RequestError(400, "messages",
                       "this model has no chat template; send a plain prompt instead");
  }
  // A template writes the special tokens itself.
  return text_.tokenizer->encode(text_.chat_template->render(request.messages, request.render),
                                 false);
}

TextAnswer Llm::generate(const TextRequest& request, const OnText& on_text) {
  TextAnswer answer;
  answer.prompt_tokens = encode_prompt(request);
  Detokenizer detokenizer(text_.tokenizer, /*skip_special_tokens=*/true);
  StopStrings stops({.stops = request.stop, .include_stop_str = false});

  auto emit = [&](const std::string& text) {
    answer.text += text;
    return text.empty() || on_text(text);
  };
  auto feed = [&](const std::string& delta) {
    const StopStrings::Step step = stops.push(delta);
    const bool wanted = emit(step.text);
    if (step.matched) answer.stop_string = step.stop;
    return wanted && !step.matched;
  };
  const Request tokens_request{.prompt = answer.prompt_tokens,
                               .sampling = request.sampling,
                               .max_tokens = request.max_tokens,
                               .ignore_eos = request.ignore_eos,
                               .cancelled = request.cancelled};
  answer.generation = engine_.generate(
      tokens_request, [&](TokenId token) { return feed(detokenizer.push(token)); });
  if (answer.stop_string.empty() && answer.generation.finish_reason != FinishReason::kAbort) {
    if (feed(detokenizer.finish())) emit(stops.finish());
  }
  if (!answer.stop_string.empty()) answer.generation.finish_reason = FinishReason::kStop;
  return answer;
}

}  // namespace octavo

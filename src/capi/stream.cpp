#include "capi/stream.h"

#include <utility>

#include "capi/event_json.h"

namespace octavo::capi {

using api::OutputEvent;

Stream::Stream(std::shared_ptr<Waiting> waiting, RequestJob job, const api::ServedModel& model)
    : waiting_(std::move(waiting)),
      tokenizer_(model.text.tokenizer),
      job_(std::move(job)),
      answers_(tokenizer_, job_.generation()) {
  const auto& generation = job_.generation();
  whole_.resize(generation.prompts.size() * static_cast<size_t>(generation.engine.n));
  for (size_t i = 0; i < whole_.size(); ++i) whole_[i].index = static_cast<int>(i);
  called_.resize(whole_.size());
  events_.push_back(begin_event(generation));
}

Stream::Taken Stream::take(size_t prompt, Update update) noexcept {
  if (failed_) return {.ended = true};
  Taken taken;
  try {
    taken.end_choice = read(prompt, std::move(update));
  } catch (const RequestError& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(RequestError(500, "", error.what()));
  }
  taken.ended = failed_ || answers_.done();
  taken.failed = failed_;
  return taken;
}

// Whether the choice was ended by its text.
bool Stream::read(size_t prompt, Update update) {
  std::optional<OutputEvent> event = answers_.take(prompt, std::move(update));
  if (!event) return false;
  if (event->finish == FinishReason::kError)
    throw RequestError(event->error_status, "", event->error);
  const bool ended_early = event->ended_early;
  std::vector<std::string> events;
  if (!job().stream) {
    merge(whole_[static_cast<size_t>(event->index)], std::move(*event));
  } else if (!event->tokens.empty() || event->finish) {
    events.push_back(answer_event({std::move(*event)}));
  }
  if (answers_.done()) {
    if (!job().stream) events.push_back(answer_event(std::exchange(whole_, {})));
    events.push_back(end_event(answers_.usage()));
  }
  put(std::move(events), answers_.done());
  return ended_early;
}

std::string Stream::answer_event(const std::vector<OutputEvent>& answers) {
  if (const auto* embedding = job_.embedding()) return embedding_event(answers, *embedding);
  if (const auto* scoring = job_.scoring()) return score_event(answers, *scoring);
  for (const OutputEvent& answer : answers) {
    for (const OutputPart& part : answer.parts) {
      if (part.kind == PartKind::kToolCall) called_[static_cast<size_t>(answer.index)] = true;
    }
  }
  return answers_event(answers, job(), called_, *tokenizer_);
}

void Stream::put(std::vector<std::string> events, bool last) {
  if (events.empty()) return;
  {
    const std::lock_guard lock(waiting_->mutex);
    if (!forgotten_) {
      for (std::string& event : events) events_.push_back(std::move(event));
    }
    ended_ = ended_ || last;
  }
  waiting_->came.notify_all();
}

void Stream::fail(const RequestError& error) {
  failed_ = true;
  {
    const std::lock_guard lock(waiting_->mutex);
    failure_ = error;
    ended_ = true;
  }
  waiting_->came.notify_all();
}

std::optional<Stream::Next> Stream::next(int64_t timeout_ms) {
  std::unique_lock lock(waiting_->mutex);
  if (!waiting_->wait(lock, timeout_ms, [&] { return ready(); })) return std::nullopt;
  Next next;
  if (!events_.empty()) {
    next.event = std::move(events_.front());
    events_.pop_front();
  } else {
    next.failure = std::exchange(failure_, std::nullopt);
  }
  return next;
}

void Stream::forget() {
  const std::lock_guard lock(waiting_->mutex);
  forgotten_ = true;
  events_.clear();
}

}  // namespace octavo::capi

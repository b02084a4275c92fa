#include "capi/session.h"

#include <chrono>
#include <utility>

namespace octavo::capi {

Session::Session(std::unique_ptr<LoadedModel> model)
    : model_(std::move(model)), text_thread_([this] { read_letters(); }) {}

Session::~Session() { close(); }

namespace {

// Only the fields that the model's files or Octavo's own defaults set.
api::Json sampling_json(const api::SamplingDefaults& defaults) {
  api::Json set = api::Json::object();
  const auto add = [&](const char* name, const auto& value) {
    if (value) set[name] = *value;
  };
  add("temperature", defaults.temperature);
  add("top_p", defaults.top_p);
  add("top_k", defaults.top_k);
  add("min_p", defaults.min_p);
  add("repetition_penalty", defaults.repetition_penalty);
  return set;
}

}  // namespace

api::Json Session::info() const {
  const api::ServedModel& served = model();
  const EngineStats stats = served.engine.stats();
  api::Json memory = api::Json::object();
  for (const api::MemoryRow& row : served.memory) memory[row.name] = row.bytes;
  return {{"version", OCTAVO_VERSION},
          {"model", served.name()},
          {"root", served.root},
          {"max_model_len", served.max_model_len},
          {"vocab_size", served.vocab},
          {"max_num_seqs", served.max_num_seqs},
          {"block_size", served.block_tokens},
          {"can_chat", served.text.chat_template != nullptr},
          {"takes_images", served.images != nullptr},
          {"pooling", served.pooling.has_value()},
          {"hidden_size", served.hidden},
          {"system_fingerprint", served.fingerprint},
          {"default_sampling_params", sampling_json(served.defaults)},
          {"memory", std::move(memory)},
          {"running", stats.scheduler.running},
          {"waiting", stats.scheduler.waiting}};
}

std::shared_ptr<Stream> Session::submit(std::string_view kind, std::string_view body) {
  auto stream = std::make_shared<Stream>(waiting_, prepare_request(kind, body, model()), model());
  const std::lock_guard lock(mutex_);
  if (closed_) throw RequestError(503, "", "the engine is closed");
  const api::GenerationJob& job = stream->job();
  try {
    for (size_t i = 0; i < job.prompts.size(); ++i) {
      Request request = job.engine;
      request.prompt = job.prompts[i].tokens;
      request.images = job.prompts[i].images;
      stream->requests.push_back(
          model().engine.submit(std::move(request), [inbox = inbox_, stream, i](Update update) {
            {
              const std::lock_guard inbox_lock(inbox->mutex);
              inbox->letters.push_back({stream, i, std::move(update)});
            }
            inbox->filled.notify_one();
          }));
    }
  } catch (...) {
    abort_requests(*stream);
    throw;
  }
  open_.insert(stream);
  return stream;
}

void Session::abort_requests(const Stream& stream) {
  for (const RequestId id : stream.requests) model().engine.abort(id);
}

void Session::cancel(Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (!closed_) abort_requests(stream);
}

void Session::read_letters() {
  while (true) {
    std::vector<Letter> letters;
    {
      std::unique_lock lock(inbox_->mutex);
      inbox_->filled.wait(lock, [&] { return !inbox_->letters.empty() || inbox_->closed; });
      letters.swap(inbox_->letters);
    }
    if (letters.empty()) return;  // closed and drained
    for (Letter& letter : letters) {
      const RequestId id = letter.update.request;
      const int choice = letter.update.choice;
      const Stream::Taken taken = letter.stream->take(letter.prompt, std::move(letter.update));
      if (taken.end_choice) model().engine.abort(id, choice);
      if (!taken.ended) continue;
      const std::lock_guard lock(mutex_);
      if (taken.failed) abort_requests(*letter.stream);
      open_.erase(letter.stream);
    }
  }
}

void Session::close() {
  std::call_once(close_once_, [this] {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      model().engine.close();
      for (const auto& stream : open_) abort_requests(*stream);
    }
    while (!model().engine.wait_until_idle(std::chrono::seconds(1))) {
    }
    {
      const std::lock_guard lock(inbox_->mutex);
      inbox_->closed = true;
    }
    inbox_->filled.notify_one();
    text_thread_.join();
  });
}

}  // namespace octavo::capi

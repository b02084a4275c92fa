// The functions of octavo.h: handles in, a status out, nothing thrown.
#include "octavo.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/token_requests.h"
#include "base/log.h"
#include "capi/session.h"

struct octavo_error {
  std::string message;
  std::string param;
  int32_t code;
};

struct octavo_engine {
  const pid_t process = getpid();
  std::mutex mutex;
  std::shared_ptr<octavo::capi::Session> session;  // none: closed

  std::shared_ptr<octavo::capi::Session> open_session();
};

struct octavo_stream {
  const pid_t process = getpid();
  std::shared_ptr<octavo::capi::Stream> stream;
  std::weak_ptr<octavo::capi::Session> session;
};

namespace {

using octavo::RequestError;
using octavo::SetupError;
using octavo::capi::Session;
using octavo::capi::Stream;

struct Forked {};

// The process that owns the compute threads; 0: none started yet.
std::atomic<pid_t> computing_process{0};

void check_process(pid_t process) {
  if (process != getpid()) throw Forked();
}

octavo_status fail(octavo_status status, octavo_error** error, int32_t code, const char* message,
                   const std::string& param = "") noexcept {
  if (error == nullptr) return status;
  try {
    *error = new octavo_error{message, param, code};
  } catch (...) {
    *error = nullptr;  // out of memory
  }
  return status;
}

// Runs `work` and converts exceptions to a status.
template <typename Work>
octavo_status guarded(octavo_error** error, const Work& work) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    return work();
  } catch (const RequestError& e) {
    return fail(OCTAVO_ERROR_REQUEST, error, e.status(), e.what(), e.param());
  } catch (const SetupError& e) {
    return fail(OCTAVO_ERROR_SETUP, error, 500, e.what());
  } catch (const Forked&) {
    return fail(OCTAVO_ERROR_FORKED, error, 500,
                "this process was forked from one that uses octavo and does not have its threads; "
                "use spawn or exec, or open the model only in the child");
  } catch (const std::exception& e) {
    return fail(OCTAVO_ERROR_INTERNAL, error, 500, e.what());
  } catch (...) {
    return fail(OCTAVO_ERROR_INTERNAL, error, 500, "an unknown error");
  }
}

template <typename Pointer>
void require(const Pointer* pointer, const char* name) {
  if (pointer == nullptr) throw RequestError(400, name, "must not be NULL");
}

char* copied(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

void log_once() {
  static std::once_flag once;
  std::call_once(once, [] { octavo::init_logging(); });
}

Stream& stream_of(const octavo_stream* handle) {
  require(handle, "stream");
  check_process(handle->process);
  return *handle->stream;
}

using TokenFunction = octavo::api::Json (*)(const octavo::api::Json&,
                                            const octavo::api::ServedModel&,
                                            const octavo::api::Preparation&);

octavo_status answer_tokens(TokenFunction function, octavo_engine* engine, const char* body,
                            char** answer, octavo_error** error) noexcept {
  return guarded(error, [&] {
    require(engine, "engine");
    require(body, "body_json");
    require(answer, "answer_json");
    const auto session = engine->open_session();
    *answer =
        copied(octavo::api::dump(function(octavo::api::parse_object(body), session->model(), {})));
    return OCTAVO_OK;
  });
}

size_t first_ready(const std::vector<Stream*>& streams) {
  size_t i = 0;
  while (i < streams.size() && !streams[i]->ready()) ++i;
  return i;
}

octavo_status wait_for_any(const std::vector<Stream*>& streams, int64_t timeout_ms, size_t* ready) {
  octavo::capi::Waiting& waiting = streams.front()->waiting();
  for (const Stream* stream : streams) {
    if (&stream->waiting() != &waiting)
      throw RequestError(400, "streams", "must belong to one engine");
  }
  std::unique_lock lock(waiting.mutex);
  const auto found = [&] { return (*ready = first_ready(streams)) < streams.size(); };
  return waiting.wait(lock, timeout_ms, found) ? OCTAVO_OK : OCTAVO_TIMEOUT;
}

}  // namespace

std::shared_ptr<Session> octavo_engine::open_session() {
  check_process(process);
  const std::lock_guard lock(mutex);
  if (!session) throw RequestError(503, "", "the engine is closed");
  return session;
}

uint32_t octavo_api_version(void) noexcept { return OCTAVO_API_VERSION; }
const char* octavo_version(void) noexcept { return OCTAVO_VERSION; }

octavo_status octavo_open(const char* model, const char* options_json, octavo_progress progress,
                          void* user, octavo_engine** engine, octavo_error** error) noexcept {
  return guarded(error, [&] {
    require(model, "model");
    require(engine, "engine");
    *engine = nullptr;
    pid_t none = 0;
    if (!computing_process.compare_exchange_strong(none, getpid())) check_process(none);
    log_once();
    octavo::capi::LoadProgress on_progress = [=](uint64_t done, uint64_t total) {
      if (progress != nullptr) progress(done, total, user);
    };
    auto opened = std::make_unique<octavo_engine>();
    opened->session = std::make_shared<Session>(octavo::capi::load_model(
        model, options_json == nullptr ? "{}" : options_json, std::move(on_progress)));
    *engine = opened.release();
    return OCTAVO_OK;
  });
}

void octavo_close(octavo_engine* engine) noexcept {
  guarded(nullptr, [&] {
    if (engine == nullptr) return OCTAVO_OK;
    check_process(engine->process);
    std::shared_ptr<Session> session;
    {
      const std::lock_guard lock(engine->mutex);
      session = std::exchange(engine->session, nullptr);
    }
    if (session) session->close();
    return OCTAVO_OK;
  });
}

void octavo_engine_free(octavo_engine* engine) noexcept {
  if (engine == nullptr || engine->process != getpid()) return;
  octavo_close(engine);
  delete engine;
}

octavo_status octavo_engine_info(octavo_engine* engine, char** info_json,
                                 octavo_error** error) noexcept {
  return guarded(error, [&] {
    require(engine, "engine");
    require(info_json, "info_json");
    *info_json = copied(octavo::api::dump(engine->open_session()->info()));
    return OCTAVO_OK;
  });
}

octavo_status octavo_submit(octavo_engine* engine, const char* kind, const char* body_json,
                            octavo_stream** stream, octavo_error** error) noexcept {
  return guarded(error, [&] {
    require(engine, "engine");
    require(kind, "kind");
    require(body_json, "body_json");
    require(stream, "stream");
    const auto session = engine->open_session();
    auto opened = std::make_unique<octavo_stream>();
    opened->session = session;
    opened->stream = session->submit(kind, body_json);
    *stream = opened.release();
    return OCTAVO_OK;
  });
}

octavo_status octavo_next(octavo_stream* stream, int64_t timeout_ms, char** event_json,
                          octavo_error** error) noexcept {
  return guarded(error, [&] {
    require(event_json, "event_json");
    *event_json = nullptr;
    const auto next = stream_of(stream).next(timeout_ms);
    if (!next) return OCTAVO_TIMEOUT;
    if (next->failure) throw RequestError(*next->failure);
    if (!next->event) return OCTAVO_END;
    *event_json = copied(*next->event);
    return OCTAVO_OK;
  });
}

octavo_status octavo_wait_any(octavo_stream* const* streams, size_t count, int64_t timeout_ms,
                              size_t* ready, octavo_error** error) noexcept {
  return guarded(error, [&] {
    require(streams, "streams");
    require(ready, "ready");
    if (count == 0) throw RequestError(400, "count", "must be at least 1");
    std::vector<Stream*> all;
    for (size_t i = 0; i < count; ++i) all.push_back(&stream_of(streams[i]));
    return wait_for_any(all, timeout_ms, ready);
  });
}

void octavo_cancel(octavo_stream* stream) noexcept {
  guarded(nullptr, [&] {
    Stream& own = stream_of(stream);
    if (const auto session = stream->session.lock()) session->cancel(own);
    return OCTAVO_OK;
  });
}

void octavo_stream_free(octavo_stream* stream) noexcept {
  if (stream == nullptr || stream->process != getpid()) return;
  stream->stream->forget();
  octavo_cancel(stream);
  delete stream;
}

octavo_status octavo_tokenize(octavo_engine* engine, const char* body_json, char** answer_json,
                              octavo_error** error) noexcept {
  return answer_tokens(octavo::api::tokenize_text, engine, body_json, answer_json, error);
}

octavo_status octavo_detokenize(octavo_engine* engine, const char* body_json, char** answer_json,
                                octavo_error** error) noexcept {
  return answer_tokens(octavo::api::detokenize_tokens, engine, body_json, answer_json, error);
}

const char* octavo_error_message(const octavo_error* error) noexcept {
  return error == nullptr ? "" : error->message.c_str();
}
const char* octavo_error_param(const octavo_error* error) noexcept {
  return error == nullptr ? "" : error->param.c_str();
}
int32_t octavo_error_code(const octavo_error* error) noexcept {
  return error == nullptr ? 0 : error->code;
}
void octavo_error_free(octavo_error* error) noexcept { delete error; }
void octavo_string_free(char* string) noexcept { std::free(string); }

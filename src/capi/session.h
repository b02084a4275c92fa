// session.h - an open model and its streams. Any thread.
//
// The engine thread only queues its updates; a text thread turns them into events, so that a stop
// string ends a request even if the stream is not read.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "api/fields/json_text.h"
#include "capi/loaded_model.h"
#include "capi/stream.h"

namespace octavo::capi {

class Session {
 public:
  explicit Session(std::unique_ptr<LoadedModel> model);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const api::ServedModel& model() const { return model_->served(); }
  // For octavo_engine_info().
  api::Json info() const;

  // Throws RequestError: 503 after close().
  std::shared_ptr<Stream> submit(std::string_view kind, std::string_view body);
  void cancel(Stream& stream);
  // Ends every stream; returns after the last one has ended.
  void close();

 private:
  struct Letter {
    std::shared_ptr<Stream> stream;
    size_t prompt;
    Update update;
  };
  // Shared with the engine's sinks, which may outlive the session.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable filled;
    std::vector<Letter> letters;
    bool closed = false;
  };

  void abort_requests(const Stream& stream);
  void read_letters();

  const std::unique_ptr<LoadedModel> model_;
  const std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();

  std::mutex mutex_;  // the two below, and Stream::requests
  std::unordered_set<std::shared_ptr<Stream>> open_;
  bool closed_ = false;

  std::once_flag close_once_;
  std::thread text_thread_;
};

}  // namespace octavo::capi

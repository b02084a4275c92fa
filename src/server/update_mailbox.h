// update_mailbox.h - passes updates from the engine thread to the I/O thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/update.h"

namespace octavo::server {

// A stream whose reader falls this far behind is closed: the engine does not wait for clients.
inline constexpr size_t kMailboxBytes = 1u << 20;
// For non-streamed responses, which are collected before they are sent.
inline constexpr size_t kUnboundedMailbox = std::numeric_limits<size_t>::max();

class UpdateMailbox : public std::enable_shared_from_this<UpdateMailbox> {
 public:
  struct Letter {
    size_t prompt;  // index of the prompt in the request
    Update update;
  };

  // `on_letter` is called on `io` when there are letters to take, at least once each time the
  // mailbox stops being empty.
  UpdateMailbox(boost::asio::any_io_executor io, std::function<void()> on_letter,
                size_t most_bytes);

  // Any thread. Never blocks for long, never throws.
  void put(size_t prompt, Update update);

  // I/O thread.
  std::vector<Letter> take();
  bool overflowed() const;
  // Discards later letters; on_letter is not called again.
  void close();

 private:
  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::vector<Letter> letters_;
  size_t bytes_ = 0;
  bool overflowed_ = false;
  bool announced_ = false;
  bool closed_ = false;
  boost::asio::any_io_executor io_;
  std::function<void()> on_letter_;  // I/O thread
};

}  // namespace octavo::server

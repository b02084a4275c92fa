// update_mailbox.h - updates on their way from the engine thread to the I/O thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/update.h"

namespace octavo::server {

// A reader that falls this far behind has lost its stream: the engine waits for nobody.
inline constexpr size_t kMailboxBytes = 1u << 20;
// For whole answers: they are kept until they are all there, and nobody's reading is slow.
inline constexpr size_t kUnboundedMailbox = std::numeric_limits<size_t>::max();

class UpdateMailbox : public std::enable_shared_from_this<UpdateMailbox> {
 public:
  struct Letter {
    size_t prompt;  // which of the call's
    Update update;
  };

  // `on_letter` is called on `io` when there is something to take, at least once after each time it
  // was empty.
  UpdateMailbox(boost::asio::any_io_executor io, std::function<void()> on_letter,
                size_t most_bytes);

  // Any thread. Never blocks for long, never throws.
  void put(size_t prompt, Update update);

  // I/O thread.
  std::vector<Letter> take();
  bool overflowed() const;
  // From here on letters are thrown away and nothing is called any more.
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

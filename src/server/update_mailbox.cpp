#include "server/update_mailbox.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace octavo::server {
namespace {

size_t size_of(const Update& update) {
  size_t bytes = sizeof(Update) + update.tokens.size() * sizeof(TokenId) +
                 update.embedding.size() * sizeof(float);
  for (const auto* part : {&update.logprobs, &update.prompt_logprobs}) {
    for (const TokenLogprobs& token : *part)
      bytes += sizeof(token) + token.top.size() * sizeof(token.top.front());
  }
  return bytes;
}

}  // namespace

UpdateMailbox::UpdateMailbox(boost::asio::any_io_executor io, std::function<void()> on_letter,
                             size_t most_bytes)
    : most_bytes_(most_bytes), io_(std::move(io)), on_letter_(std::move(on_letter)) {}

void UpdateMailbox::put(size_t prompt, Update update) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  const size_t bytes = size_of(update);
  // A single letter may have any size: prompt logprobs arrive in one piece.
  if (!letters_.empty() && bytes_ + bytes > most_bytes_) {
    overflowed_ = true;
  } else {
    bytes_ += bytes;
    letters_.push_back({prompt, std::move(update)});
  }
  if (std::exchange(announced_, true)) return;
  boost::asio::post(io_, [self = shared_from_this()] {
    if (self->on_letter_) self->on_letter_();
  });
}

std::vector<UpdateMailbox::Letter> UpdateMailbox::take() {
  const std::lock_guard lock(mutex_);
  announced_ = false;
  bytes_ = 0;
  return std::exchange(letters_, {});
}

bool UpdateMailbox::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

void UpdateMailbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  letters_.clear();
  on_letter_ = nullptr;
}

}  // namespace octavo::server

// token_log.h - the tokens of one sequence. One thread appends while kernels on another read the
// part that existed when their step was queued. No MLX.
#pragma once

#include <memory>
#include <span>

#include "base/error.h"
#include "base/token_id.h"

namespace octavo {

// Never moves or overwrites tokens, so a reader of the first n tokens needs no lock: the
// synchronisation that passes it n (a queue's mutex) also makes the tokens visible.
class TokenLog {
 public:
  explicit TokenLog(int capacity)
      : tokens_(std::make_unique<TokenId[]>(static_cast<size_t>(capacity))), capacity_(capacity) {}

  void append(TokenId token) {
    OCTAVO_CHECK(size_ < capacity_);
    tokens_[static_cast<size_t>(size_++)] = token;
  }
  void append(std::span<const TokenId> tokens) {
    for (TokenId token : tokens) append(token);
  }

  // The writer's view.
  int size() const { return size_; }
  std::span<const TokenId> all() const { return first(size_); }
  // A reader's view.
  std::span<const TokenId> first(int count) const {
    return {tokens_.get(), static_cast<size_t>(count)};
  }

 private:
  std::unique_ptr<TokenId[]> tokens_;
  int capacity_;
  int size_ = 0;
};

}  // namespace octavo

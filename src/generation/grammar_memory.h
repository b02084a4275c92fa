// grammar_memory.h - counts the memory of the grammars of all open requests. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace octavo {

class GrammarMemory : public std::enable_shared_from_this<GrammarMemory> {
 public:
  explicit GrammarMemory(uint64_t limit) : limit_(limit) {}

  // Bytes counted until destruction.
  class Charge {
   public:
    Charge(Charge&& other) noexcept
        : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&&) = delete;
    ~Charge() {
      if (memory_) memory_->used_ -= bytes_;
    }

    // Returns false, without a change, if the limit would be exceeded. One thread at a time.
    bool grow_to(uint64_t bytes) {
      if (bytes <= bytes_) return true;
      if (!memory_->add(bytes - bytes_)) return false;
      bytes_ = bytes;
      return true;
    }

   private:
    friend class GrammarMemory;
    Charge(std::shared_ptr<GrammarMemory> memory, uint64_t bytes)
        : memory_(std::move(memory)), bytes_(bytes) {}

    std::shared_ptr<GrammarMemory> memory_;
    uint64_t bytes_;
  };

  // Returns nullopt if the limit would be exceeded.
  std::optional<Charge> charge(uint64_t bytes) {
    if (!add(bytes)) return std::nullopt;
    return Charge(shared_from_this(), bytes);
  }
  uint64_t used() const { return used_; }
  uint64_t limit() const { return limit_; }

 private:
  bool add(uint64_t bytes) {
    uint64_t before = used_;
    do {
      if (bytes > limit_ || before > limit_ - bytes) return false;
    } while (!used_.compare_exchange_weak(before, before + bytes));
    return true;
  }

  uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace octavo

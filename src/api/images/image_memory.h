// image_memory.h - limits what the images of open requests hold. Any thread. No MLX.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace octavo::api {

class ImageMemory {
 public:
  explicit ImageMemory(size_t bytes) : bytes_(bytes) {}

  // Bytes that are returned when the lease ends.
  class Lease {
   public:
    Lease(std::shared_ptr<ImageMemory> memory, size_t bytes)
        : memory_(std::move(memory)), bytes_(bytes) {}
    Lease(Lease&& other) noexcept
        : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (memory_) memory_->taken_ -= bytes_;
    }

   private:
    std::shared_ptr<ImageMemory> memory_;
    size_t bytes_;
  };

  size_t bytes() const { return bytes_; }
  size_t taken() const { return taken_; }

  // Nullopt if so much is not free.
  static std::optional<Lease> try_take(const std::shared_ptr<ImageMemory>& memory, size_t bytes) {
    size_t taken = memory->taken_;
    do {
      if (bytes > memory->bytes_ - taken) return std::nullopt;
    } while (!memory->taken_.compare_exchange_weak(taken, taken + bytes));
    return std::optional<Lease>(std::in_place, memory, bytes);
  }

 private:
  const size_t bytes_;
  std::atomic<size_t> taken_ = 0;
};

}  // namespace octavo::api

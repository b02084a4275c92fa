// bounded_writer.h - writes to a descriptor such as stderr without waiting long for its reader. One
// thread at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octavo {

// Pipes and sockets are never blocked on. Terminals and files are written as usual. The descriptor
// stays the caller's, and its flags, which other processes share, are not changed.
class BoundedWriter {
 public:
  explicit BoundedWriter(int descriptor);
  ~BoundedWriter();
  BoundedWriter(const BoundedWriter&) = delete;
  BoundedWriter& operator=(const BoundedWriter&) = delete;

  // Waits at most `patience` in total for a reader. Returns how many bytes were written.
  size_t write(std::string_view bytes, std::chrono::milliseconds patience);

  // Whether the last write failed for another reason than a slow reader: the reader is gone, or the
  // disk is full.
  bool is_broken() const { return broken_; }

 private:
  enum class Kind : uint8_t {
    kBlocking,     // a terminal or file
    kNonBlocking,  // a pipe, through an open file description of our own
    kPipe,         // a pipe: written to only after poll()
    kSocket,
  };
  ssize_t write_some(std::string_view bytes) const;

  int descriptor_;
  Kind kind_ = Kind::kBlocking;
  bool broken_ = false;
};

}  // namespace octavo

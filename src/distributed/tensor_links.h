// tensor_links.h - sends and receives rows of numbers between ranks. One thread per peer and
// direction. No MLX.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>

namespace octavo {

// A peer is gone, silent for too long, or the links were stopped.
class LinkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TensorLinks {
 public:
  virtual ~TensorLinks() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Both block until all bytes are passed on or have arrived; a send may block until the peer
  // receives. A receive must be of the same length as the peer's send. Throw LinkError if no byte
  // moves until the deadline (set at construction), when the peer is gone, and after stop(). After
  // an error, the link to that peer can no longer be used.
  virtual void send(int peer, std::span<const std::byte> bytes) = 0;
  virtual void receive(int peer, std::span<std::byte> bytes) = 0;
  // Makes blocked and later calls throw. Any thread.
  virtual void stop() = 0;
};

}  // namespace octavo

// adapter.h - a loaded LoRA adapter as the scheduler and the APIs see it. No MLX.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/sha256.h"

namespace octavo {

// Requests share it, so an adapter that was unloaded lasts until its last request has ended. An
// engine derives its own type, which has the matrices.
class Adapter {
 public:
  // `id`: unique among the adapters of an engine. `digest`: of the adapter's files, so that one that
  // is loaded again under the same name with other content shares nothing with the first.
  Adapter(uint64_t id, std::string name, const Sha256Digest& digest)
      : id_(id), name_(std::move(name)), digest_(digest) {}
  virtual ~Adapter() = default;
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  uint64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  const Sha256Digest& digest() const { return digest_; }

 private:
  uint64_t id_;
  std::string name_;
  Sha256Digest digest_;
};

}  // namespace octavo

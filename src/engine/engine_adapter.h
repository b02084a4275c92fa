// engine_adapter.h - an adapter with its matrices in host memory.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "models/adapters/lora_weights.h"
#include "scheduler/adapter.h"

namespace octavo {

class EngineAdapter : public Adapter {
 public:
  // `open`: counts the adapters that exist.
  EngineAdapter(uint64_t id, std::string name, LoraWeights weights,
                std::shared_ptr<std::atomic<int>> open)
      : Adapter(id, std::move(name), weights.digest),
        weights_(std::move(weights)),
        open_(std::move(open)) {
    ++*open_;
  }
  ~EngineAdapter() override { --*open_; }

  const LoraWeights& weights() const { return weights_; }

 private:
  LoraWeights weights_;
  std::shared_ptr<std::atomic<int>> open_;
};

}  // namespace octavo

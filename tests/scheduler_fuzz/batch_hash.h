// batch_hash.h - a hash of a step of scheduler_fuzz: everything that depends on the scheduler's decisions.
// No MLX.
#pragma once

#include <cstdint>

#include "scheduler/batch.h"
#include "scheduler/testing/fake_model.h"

namespace octavo {

inline uint64_t hash_of_decisions(const Batch& batch) {
  uint64_t hash = 0;
  const auto add = [&](const auto& numbers) {
    for (const auto number : numbers) hash = fake_mix(hash, static_cast<uint64_t>(number));
    hash = fake_mix(hash, numbers.size());
  };
  for (const auto* numbers :
       {&batch.tokens, &batch.token_sources, &batch.positions, &batch.cu_seqlens_q,
        &batch.logit_rows, &batch.hidden_rows, &batch.next_sources, &batch.adapter_slots})
    add(*numbers);
  for (const BlockTable& table : batch.block_tables) add(table.pages);
  add(batch.rope_positions);
  add(batch.last_visible);
  add(batch.token_types);
  add(batch.image_work.drops);
  hash = fake_mix(hash, batch.image_work.encodes);
  return hash;
}

}  // namespace octavo

// lora.h - for tests: random LoRA adapters of a projection.
#pragma once

#include <random>
#include <vector>

#include "kernels/lora.h"
#include "kernels/testing/support.h"
#include "kernels/testing/weights.h"

namespace octavo {

// One slot per rank; rank 0: an empty slot. B A is about as large as a random weight.
inline LoraMatrices random_lora(std::mt19937& random, const std::vector<int>& ranks, int inputs,
                                int outputs, DType dtype) {
  LoraMatrices matrices = make_lora_matrices({.slots = static_cast<int>(ranks.size()),
                                              .max_rank = std::max(1, std::ranges::max(ranks)),
                                              .inputs = inputs,
                                              .outputs = outputs,
                                              .dtype = dtype});
  for (size_t slot = 0; slot < ranks.size(); ++slot) {
    const int rank = ranks[slot];
    if (rank == 0) continue;
    const mx::array a = random_array(random, {rank, inputs});
    const mx::array b = random_array(random, {outputs, rank});
    write_lora(matrices, static_cast<int>(slot),
               {.rank = rank,
                .scale = 0.75f / std::sqrt(static_cast<float>(rank)),
                .a = bytes_of(a),
                .b = bytes_of(b)});
  }
  return matrices;
}

// Slots of `rows` rows; a quarter of the rows has none.
inline std::vector<int32_t> random_slots(std::mt19937& random, int rows, int slots) {
  std::vector<int32_t> out;
  for (int row = 0; row < rows; ++row)
    out.push_back(random() % 4 == 0
                      ? kNoLora
                      : static_cast<int32_t>(random() % static_cast<unsigned>(slots)));
  return out;
}

}  // namespace octavo

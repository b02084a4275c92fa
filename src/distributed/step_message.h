// step_message.h - a step as rank 0 announces it, as bytes. No MLX.
//
// Decoders throw WireError for anything malformed. They check every count against the bytes that
// are left before they allocate, and every index, page and token against the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "distributed/cluster_error.h"
#include "distributed/result_message.h"
#include "kernels/types/token_mask.h"
#include "scheduler/batch.h"

namespace octavo {

struct StepMessage {
  uint64_t number = 0;  // 0, 1, ... since the last drop
  Batch batch = {};
};

// What a step of this model may hold. Both ends take it from the engine's plan.
struct StepLimits {
  // Of a cache group.
  struct Group {
    int block_tokens = 16;
    int window = 0;  // 0: none
  };

  int rows = 1 << 16;
  int vocab = 1 << 20;       // of tokens that are embedded or drawn
  int page_count = 1 << 30;  // ids are below it
  int positions = 1 << 24;   // of a sequence
  int block_tables = 64;     // the most
  bool predicts = true;      // Batch::next_tokens may be set
  int hidden = 0;            // numbers of each row of StepResult::hidden; 0: any
  // If set: the block tables begin with one per group, which must have a page for every token that
  // the step reads or writes.
  std::vector<Group> groups = {};
};

// Which part of a step a rank needs.
enum class StepPart : uint8_t {
  kLayers,  // sampling has as many entries, all with default values
  kDraws,   // everything
};

// Requires a batch without adapters, and, for kDraws, rows whose histories need no token of the
// previous step (RowHistory::pending).
std::vector<std::byte> encode(const StepMessage& message, StepPart part = StepPart::kDraws);
// The masks of a decoded step, by index among Batch::sampling; null: the row has none.
using StepMasks = std::vector<std::shared_ptr<TokenMask>>;
// The caller checks Batch::token_sources against the previous step's number of draws: here they are
// below `limits.rows`, and tokens that they replace may have any value.
// Rules and histories that several rows share are shared again. A row with a mask gets a new,
// unset TokenMask, which `masks`, if not null, gets too.
StepMessage decode_step(std::span<const std::byte> bytes, const StepLimits& limits,
                        StepMasks* masks = nullptr);

struct MaskMessage {
  uint64_t number = 0;  // of the step
  uint32_t index = 0;   // among Batch::sampling
  std::optional<std::string> failure = {};
  std::vector<uint32_t> words = {};  // as TokenMask::set takes them
};

std::vector<std::byte> encode(const MaskMessage& message);
MaskMessage decode_mask(std::span<const std::byte> bytes);

}  // namespace octavo

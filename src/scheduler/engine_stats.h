// engine_stats.h - counters of a running engine. No MLX.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bucket_counts.h"
#include "cache/disk_stats.h"

namespace octavo {

// Counted since start-up, except the first three.
struct SchedulerStats {
  int running = 0;
  int waiting = 0;
  int steps_in_flight = 0;
  uint64_t steps = 0;
  uint64_t preemptions = 0;
  uint64_t failed_steps = 0;
  uint64_t prefix_queries = 0;  // tokens looked up in the prefix cache
  uint64_t prefix_hits = 0;     // tokens found there
  uint64_t prompt_tokens = 0;   // rows of prompt tokens, including recomputed ones
  uint64_t decode_tokens = 0;   // rows of generated tokens and drafts
  uint64_t generated_tokens = 0;
  uint64_t drafts = 0;           // drafts verified, of one or more tokens each
  uint64_t draft_tokens = 0;     // tokens in them
  uint64_t accepted_tokens = 0;  // draft tokens accepted
  uint64_t image_queries = 0;  // images of admitted requests whose rows are not in the prefix cache
  uint64_t image_hits = 0;     // those of them that had been encoded before
  uint64_t images_encoded = 0;
  bool takes_images = false;
  DiskStats disk = {};  // of the disk tier, if enabled
};

// Names of the adapters that sequences use, in order; empty without LoRA.
struct AdapterUse {
  int slots = 0;  // --max-loras; 0: LoRA is off
  std::vector<std::string> running = {};
  std::vector<std::string> waiting = {};
};

// How the loop spent its time, in seconds since start-up.
struct LoopTimes {
  double scheduling = 0;  // planning steps, reading results, sending updates
  double queueing = 0;    // queueing steps on the device
  double waiting = 0;     // for the device
};

// Bounds of vLLM's vllm:iteration_tokens_total.
inline constexpr std::array<double, 13> kStepRowBounds = {1,   8,    16,   32,   64,   128,  256,
                                                          512, 1024, 2048, 4096, 8192, 16384};
inline constexpr std::array<double, 15> kStepSecondsBounds = {
    .0005, .001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, 1, 2.5, 5, 10};

struct EngineStats {
  SchedulerStats scheduler;
  LoopTimes times;
  BucketCounts step_rows{kStepRowBounds};         // rows of every step
  BucketCounts step_seconds{kStepSecondsBounds};  // from one result to the next
  int page_count = 0;
  int referenced_pages = 0;
  int cached_pages = 0;
  int open_requests = 0;  // submitted but not finished
  AdapterUse adapters = {};
};

}  // namespace octavo

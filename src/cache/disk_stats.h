// disk_stats.h - counters of the disk tier. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

struct DiskStats {
  bool on = false;               // enabled
  bool shut_out = false;         // another process has locked the folder
  bool writes_off = false;       // paused after a write error
  uint64_t bytes = 0;            // of all files in the folder
  uint64_t pages = 0;            // on disk, of this model
  uint64_t written = 0;          // pages since start-up, as all below
  uint64_t read = 0;             // with a correct checksum
  uint64_t evicted = 0;          // to stay within the size limit
  uint64_t corrupt = 0;          // dropped because of a wrong checksum
  uint64_t write_errors = 0;     // pages that could not be written
  uint64_t dropped = 0;          // not written because too many were waiting
  uint64_t hits = 0;             // prompts with pages read from disk
  uint64_t received = 0;         // from other processes
  uint64_t proven = 0;           // received pages that were computed here as well, and are equal
  uint64_t refuted = 0;          // received pages with other bytes
  uint64_t misses = 0;           // prompts without further pages on disk
  uint64_t restored_tokens = 0;  // not recomputed
};

}  // namespace octavo

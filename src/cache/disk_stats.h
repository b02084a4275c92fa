// disk_stats.h - what can be read off the disk tier. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

struct DiskStats {
  bool on = false;               // there is a tier
  bool shut_out = false;         // another process has the folder
  bool writes_off = false;       // the disk refused a page of late
  uint64_t bytes = 0;            // of all files in the folder
  uint64_t pages = 0;            // of this model
  uint64_t written = 0;          // pages, since the start, as all below
  uint64_t read = 0;             // bit for bit
  uint64_t evicted = 0;          // to make room
  uint64_t corrupt = 0;          // dropped because they did not come back as they were written
  uint64_t write_errors = 0;     // pages the disk refused
  uint64_t dropped = 0;          // never written: the disk was behind
  uint64_t hits = 0;             // prompts that began with pages of the disk
  uint64_t misses = 0;           // prompts it had nothing more for
  uint64_t restored_tokens = 0;  // that needed no computing
};

}  // namespace octavo

// mapping_watch.h - what happens when a mapped file becomes shorter. Reading past the new end raises
// SIGBUS, which would end the process. For a watched mapping the rest reads as zeros instead, and the
// mapping is marked, so that its reader can report an error. Any thread.
#pragma once

#include <cstddef>
#include <memory>

namespace octavo {

class WatchedMapping;

struct EndMappingWatch {
  void operator()(WatchedMapping* mapping) const noexcept;
};

// Ends the watch on destruction, which must come before munmap().
using MappingWatch = std::unique_ptr<WatchedMapping, EndMappingWatch>;

// The first call installs the handler of SIGBUS. It passes signals that concern no watched mapping to
// the handler that was installed before.
MappingWatch watch_mapping(const std::byte* begin, size_t size);

// Whether bytes of it could not be read and were replaced with zeros.
bool has_lost_bytes(const WatchedMapping& mapping);

}  // namespace octavo

// Any bytes either parse as safetensors or throw SetupError.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "models/format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    octavo::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const octavo::SetupError&) {
  }
  return 0;
}

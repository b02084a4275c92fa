// Any bytes either parse as GGUF or throw SetupError, and so does every getter on what was parsed.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/error.h"
#include "models/format/gguf.h"

namespace {

void attempt(const std::function<void()>& action) {
  try {
    action();
  } catch (const octavo::SetupError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attempt([&] {
    const auto file = octavo::parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& [key, value] : file.metadata.values()) {
      attempt([&, k = key] { file.metadata.find_u32(k); });
      attempt([&, k = key] { file.metadata.find_i64(k); });
      attempt([&, k = key] { file.metadata.find_f32(k); });
      attempt([&, k = key] { file.metadata.find_string(k); });
      attempt([&, k = key] { file.metadata.find_strings(k); });
      attempt([&, k = key] { file.metadata.find_integers(k); });
      attempt([&, k = key] { file.metadata.find_floats(k); });
    }
  });
  return 0;
}

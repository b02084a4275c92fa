// rust_border.h - C++ helpers for the Rust FFI: owned values and statuses.
#pragma once

#include <octavo_rust.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Text owned by the Rust library; freed on destruction.
class RustText {
 public:
  RustText() = default;
  RustText(const RustText&) = delete;
  RustText& operator=(const RustText&) = delete;
  ~RustText() { octavo_text_free(text_); }

  octavo_text* out() { return &text_; }
  std::string_view view() const { return {text_.data, text_.size}; }

 private:
  octavo_text text_{nullptr, 0};
};

// For calls that can fail only by our own mistake.
inline void expect_ok(octavo_rust_status status) { OCTAVO_CHECK(status == OCTAVO_RUST_OK); }

}  // namespace octavo

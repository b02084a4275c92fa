// fuzz_input.h - what a fuzzer's input begins with: choices of the harness. The rest is parsed. No MLX.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace octavo {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  // The next byte; 0 after the end.
  uint8_t byte() {
    if (left_.empty()) return 0;
    const auto value = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }
  // One of `choices`, by the next byte.
  template <typename List>
  auto& any(List& choices) {
    return choices[byte() % choices.size()];
  }
  std::string_view rest() const { return left_; }

  // The rest, divided as the next two bytes say.
  std::vector<std::string_view> pieces() {
    const size_t longest = size_t{1} + byte();
    std::minstd_rand random(1u + byte());
    std::vector<std::string_view> divided;
    for (std::string_view text = left_; !text.empty(); text.remove_prefix(divided.back().size()))
      divided.push_back(text.substr(0, 1 + random() % longest));
    return divided;
  }

 private:
  std::string_view left_;
};

}  // namespace octavo

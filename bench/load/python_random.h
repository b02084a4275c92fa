// python_random.h - the generator of CPython's `random` module, so that a seed selects the same
// conversations as in a program written in Python. No MLX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace octavo::bench {

// random.Random(seed) for a seed of 0 or more: the Mersenne Twister MT19937, seeded with the
// seed's 32-bit words.
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  // random.getrandbits(32)
  uint32_t next();

  // random.randrange(end). end: 1 to 2^32 - 1
  uint32_t below(uint32_t end);

  // random.shuffle(values). At most 2^32 - 1 values.
  template <typename Value>
  void shuffle(std::vector<Value>& values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(static_cast<uint32_t>(i))]);
  }

 private:
  static constexpr size_t kWords = 624;

  void twist();

  std::array<uint32_t, kWords> state_ = {};
  size_t at_ = kWords;  // the next word of the state; kWords: all are used
};

}  // namespace octavo::bench

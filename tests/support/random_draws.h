// random_draws.h - draws of one generator, for tests that repeat them by their seed.
#pragma once

#include <random>

namespace octavo {

class RandomDraws {
 public:
  // The generator must outlive it.
  explicit RandomDraws(std::mt19937& random) : random_(random) {}

  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return draw(1, 100) <= percent; }
  std::mt19937::result_type number() { return random_(); }

 private:
  std::mt19937& random_;
};

}  // namespace octavo

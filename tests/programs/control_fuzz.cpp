// control_fuzz [--count N] [--seed N] - changes valid messages between ranks N times and decodes
// them. Every change has to be accepted or refused with a WireError, without allocating much more
// than the message's size; a sanitizer or a crash reports anything else. Prints how many of each
// type were refused.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "distributed/testing/random_messages.h"
#include "support/control_messages.h"

namespace {
std::atomic<size_t> allocated = 0;  // since it was last set to 0
}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  allocated += bytes;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace octavo {
namespace {

// Of objects per byte on the wire, and of what every message may allocate.
constexpr size_t kBytesPerByte = 64;
constexpr size_t kAnyMessage = 256u << 10;

// One to four changes: a bit, a byte, a word that is near a limit, or the length.
void damage(MessageBytes& bytes, RandomMessages& random) {
  for (int edits = 1 + random.below(4); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = random.word() % bytes.size();
    switch (random.below(5)) {
      case 0:
        bytes[at] ^= std::byte{1} << random.below(8);
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(random.below(256));
        break;
      case 2: {
        constexpr uint32_t kWords[] = {0,          1,          0xFFFFFFFF, 0x7FFFFFFF, 0x80000000,
                                       0x10000000, 0x00FFFFFF, 0x7FC00000, 1000,       64};
        const uint32_t word = kWords[random.below(10)];
        if (bytes.size() - at >= 4) std::memcpy(&bytes[at], &word, 4);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      default:
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at),
                     static_cast<size_t>(1 + random.below(8)),
                     static_cast<std::byte>(random.below(256)));
    }
  }
}

int run(int count, uint32_t seed) {
  RandomMessages random(seed);
  const auto kinds = control_messages();
  std::map<std::string, std::pair<int, int>> refused;  // and all
  size_t most = 0;
  for (int i = 0; i < count; ++i) {
    const auto& [name, kind] =
        *std::next(kinds.begin(), random.below(static_cast<int>(kinds.size())));
    MessageBytes bytes = kind.make(random);
    kind.decode(bytes);  // valid
    damage(bytes, random);
    auto& [refusals, all] = refused[name];
    ++all;
    allocated = 0;
    try {
      kind.decode(bytes);
    } catch (const WireError&) {
      ++refusals;
    }
    const size_t used = allocated;
    most = std::max(most, used);
    if (used > kAnyMessage + kBytesPerByte * bytes.size()) {
      fmt::print(stderr, "seed {}, message {} ({}): {} bytes of it allocated {} bytes\n", seed, i,
                 name, bytes.size(), used);
      return 1;
    }
  }
  for (const auto& [name, counts] : refused)
    fmt::print("{:16} {:7} of {:7} refused\n", name, counts.first, counts.second);
  fmt::print("at most {} bytes were allocated for a message\n", most);
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  CLI::App app("Decodes mutated messages between ranks");
  int count = 20000;
  uint32_t seed = 1;
  app.add_option("--count", count);
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  return octavo::run(count, seed);
}

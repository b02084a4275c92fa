// Repeatedly kills a process that writes prefix pages, at random points, and checks the files:
// every page that can be read is correct, and the files never exceed the size limit.
//
// usage: disk_kill FOLDER [--kills 200] [--seed 1]
//
// Prints one JSON line; aborts on a violation.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "cache/disk_pages_fixture.h"

namespace octavo {
namespace {

constexpr size_t kPageBytes = 100'000;
constexpr uint64_t kMostBytes = 6'000'000;  // about 57 pages
constexpr int kNumbers = 200;

DiskTierOptions options_in(const std::string& folder) {
  return {.store = {.folder = folder,
                    .fingerprint = "kills",
                    .page_bytes = kPageBytes,
                    .most_bytes = kMostBytes}};
}

[[noreturn]] void write_until_killed(const std::string& folder, unsigned seed) {
  DiskTier tier(options_in(folder));
  std::mt19937 random(seed);
  while (true) {
    const int number = static_cast<int>(random() % kNumbers);
    save_page(tier, number, number > 0 ? std::optional(number - 1) : std::nullopt);
    if (random() % 1000 == 0) tier.clear();
    OCTAVO_CHECK(read_pages(tier, {static_cast<int>(random() % kNumbers)}) >= 0);
  }
}

int run(const std::string& folder, int kills, unsigned seed) {
  std::mt19937 random(seed);
  uint64_t right = 0;
  uint64_t corrupt = 0;
  uint64_t most = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const unsigned child_seed = random();
    const pid_t child = ::fork();
    OCTAVO_CHECK(child >= 0);
    if (child == 0) write_until_killed(folder, child_seed);
    ::usleep(random() % 60'000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    OCTAVO_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (!std::filesystem::exists(folder)) continue;  // killed before it started
    most = std::max(most, bytes_on_disk(folder));
    OCTAVO_CHECK(most <= kMostBytes);
    DiskTier tier(options_in(folder));
    for (int number = 0; number < kNumbers; ++number) {
      const int came = read_pages(tier, {number});
      OCTAVO_CHECK(came >= 0);
      right += static_cast<uint64_t>(came);
    }
    corrupt += tier.stats().corrupt;
  }
  std::cout << nlohmann::json{{"kills", kills},
                              {"pages_right", right},
                              {"pages_dropped", corrupt},
                              {"most_bytes", most},
                              {"allowed_bytes", kMostBytes}}
            << "\n";
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  std::string folder;
  int kills = 200;
  unsigned seed = 1;
  CLI::App app("Tests the disk tier under SIGKILL");
  app.add_option("FOLDER", folder)->required();
  app.add_option("--kills", kills);
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  return octavo::run(folder, kills, seed);
}

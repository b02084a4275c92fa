// Any bytes in a config.json become a plan, or throw SetupError.
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "models/config_file.h"
#include "models/config_keys.h"

namespace octavo {
namespace {

// A file in memory, since configs are read from paths.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("config.json", MFD_CLOEXEC)) { OCTAVO_CHECK(file_ >= 0); }

  std::filesystem::path with_content(const uint8_t* data, size_t size) {
    OCTAVO_CHECK(::ftruncate(file_, 0) == 0);
    OCTAVO_CHECK(::pwrite(file_, data, size, 0) == static_cast<ssize_t>(size));
    return "/proc/self/fd/" + std::to_string(file_);
  }

 private:
  int file_;  // open until the process ends
};

}  // namespace
}  // namespace octavo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo;
  static const bool quiet = (spdlog::set_level(spdlog::level::off), true);
  static MemoryFile file;
  (void)quiet;
  try {
    const Config config = read_config_file(file.with_content(data, size));
    const DecoderPlan plan = plan_config_file(config, UnknownKeys::kWarn);
    plan.parameters();
    plan.row_elements();
    plan.widest_input();
    plan.cache_specs(DType::kBFloat16, KvFormat::kPlain);
  } catch (const SetupError&) {
  }
  return 0;
}

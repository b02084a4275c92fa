#include "cli/model_by_name.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/units.h"
#include "cli/chat/interrupt.h"
#include "cli/progress_bar.h"
#include "models/config_file.h"
#include "models/config_keys.h"
#include "models/gguf/architectures.h"

namespace octavo {
namespace {

// Starts the bar at the first bytes received, so that bytes from an earlier download do not count
// towards the rate.
class DownloadBar {
 public:
  bool update(uint64_t done, uint64_t total, bool waiting) {
    if (waiting && !told_) {
      fmt::print(stderr, "Another process is downloading this model; waiting for it\n");
      told_ = true;
    }
    if (total > 0 && !waiting) {
      if (!bar_) {
        first_ = done;
        bar_.emplace("Downloading", [this](uint64_t now, uint64_t all, double seconds) {
          return text(now, all, seconds);
        });
      }
      bar_->update(done, total);
    }
    return !interrupt_.requested();
  }

 private:
  std::string text(uint64_t done, uint64_t total, double seconds) const {
    const double rate =
        seconds > 0 ? static_cast<double>(done - std::min(first_, done)) / seconds : 0;
    std::string text = fmt::format("{} of {}  {}/s", format_bytes(done), format_bytes(total),
                                   format_bytes(static_cast<uint64_t>(rate)));
    if (rate < 1) return text;
    const auto left = static_cast<uint64_t>(static_cast<double>(total - done) / rate);
    return text + fmt::format("  {}:{:02} left", left / 60, left % 60);
  }

  InterruptScope interrupt_;
  std::optional<ProgressBar> bar_;
  uint64_t first_ = 0;
  bool told_ = false;
};

template <typename Find>
FoundModel with_progress(const std::string& name, const DownloadFlags& flags, Find&& find) {
  HubOptions options;
  options.force = flags.force;
  options.connections = flags.connections;
  options.memory_fraction = flags.memory_fraction;
  options.say = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  const UnknownKeys unknown = flags.strict_config ? UnknownKeys::kRefuse : UnknownKeys::kWarn;
  options.check_config = [unknown](const std::filesystem::path& config_json) {
    plan_config_file(read_config_file(config_json), unknown);
  };
  options.check_gguf_architecture = [&](const std::string& architecture) {
    find_gguf_architecture(architecture, name);
  };
  std::optional<DownloadBar> bar;  // made late: until a download starts, Ctrl-C ends the program
  options.on_download = [&](uint64_t done, uint64_t total, bool waiting) {
    if (!bar) bar.emplace();
    if (flags.on_bytes && total > 0) flags.on_bytes(done, total);
    return bar->update(done, total, waiting);
  };
  try {
    return find(name, options);
  } catch (const DownloadStopped&) {
    bar.reset();
    fmt::print(stderr, "Stopped; run the same command again to resume\n");
    throw CLI::RuntimeError(130);
  }
}

}  // namespace

FoundModel find_model_by_name(const std::string& name, const DownloadFlags& flags) {
  return with_progress(name, flags, find_model);
}

FoundModel pull_model_by_name(const std::string& name, const DownloadFlags& flags) {
  return with_progress(name, flags, pull_model);
}

}  // namespace octavo

// The processes of loaded models: how they start, report and end.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <filesystem>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/overloaded.h"
#include "base/sha256.h"
#include "base/units.h"
#include "front/model_pool.h"

namespace octavo::front {
namespace {

using ChildClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFirstRetry{2};
constexpr int kMostDoublings = 5;  // of the first retry

// With the last line of its log, for example a flag that it does not know.
std::string reason_of(const std::string& model, const ChildEnd& end) {
  std::string_view lines = end.last_lines;
  while (lines.ends_with('\n')) lines.remove_suffix(1);
  const size_t start = lines.rfind('\n');
  if (start != std::string_view::npos) lines.remove_prefix(start + 1);
  return fmt::format("{} could not be loaded: its process {}{}{}", model, end.describe(),
                     lines.empty() ? "" : ": ", lines.substr(0, 500));
}

// A name may hold characters that a path cannot.
std::string model_state_dir(const std::string& state_dir, const std::string& model) {
  constexpr size_t kNameBytes = 16;
  const Sha256Digest digest =
      sha256(std::span(reinterpret_cast<const uint8_t*>(model.data()), model.size()));
  std::string name;
  for (size_t i = 0; i < kNameBytes; ++i) name += fmt::format("{:02x}", digest[i]);
  return (std::filesystem::path(state_dir) / "models" / name).string();
}

std::string_view flag_name(std::string_view flag) { return flag.substr(0, flag.find('=')); }

}  // namespace

// Without the flags that set its memory and its socket. A flag of the model replaces that of all
// models.
std::vector<std::string> ModelPool::child_arguments(const ModelSlot& slot) const {
  std::vector<std::string> arguments = {"serve", slot.model->source,
                                        fmt::format("--status-fd={}", kStatusDescriptor)};
  const auto& own = slot.model->flags;
  for (const std::string& flag : options_.child_flags) {
    const bool replaced = std::ranges::any_of(
        own, [&](const std::string& other) { return flag_name(other) == flag_name(flag); });
    if (!replaced) arguments.push_back(flag);
  }
  arguments.insert(arguments.end(), own.begin(), own.end());
  return arguments;
}

// The memory is reserved from now on, also while a restart is delayed.
void ModelPool::start_child(const SlotPtr& slot) {
  slot->is_loading = true;
  slot->progress = {};
  slot->child_error.clear();
  publish({.model = slot->name(), .status = "loading"});
  slot->start_delay = std::make_unique<boost::asio::steady_timer>(io_);
  slot->start_delay->expires_at(slot->restarts.start_at());
  slot->start_delay->async_wait([this, slot](const boost::system::error_code& error) {
    if (!error) spawn_child(slot);
  });
}

void ModelPool::spawn_child(const SlotPtr& slot) {
  if (std::exchange(slot->is_unload_requested, false) || is_shutting_down_) {
    slot->is_loading = false;
    residency_.ended(slot->name(), ChildClock::now());
    publish({.model = slot->name(), .status = "unloaded"});
    return update();
  }
  slot->starting_generation = ++generations_;
  slot->socket = folder_->socket(slot->starting_generation);
  std::vector<std::string> arguments = child_arguments(*slot);
  std::erase_if(arguments,
                [](const std::string& argument) { return argument.starts_with("--kv-memory="); });
  arguments.insert(arguments.end(),
                   {fmt::format("--uds={}", slot->socket), "--behind-front", "--no-access-log",
                    fmt::format("--served-model-name={}", slot->name()),
                    fmt::format("--kv-memory={}", slot->memory.kv_bytes),
                    fmt::format("--memory-limit={}", slot->memory.limit_bytes),
                    fmt::format("--memory-fraction={}", options_.memory_fraction)});
  if (!options_.state_dir.empty())
    arguments.push_back("--state-dir=" + model_state_dir(options_.state_dir, slot->name()));
  spdlog::info("loading {}: {}, of which {} are its KV cache", slot->name(),
               format_bytes(slot->memory.limit_bytes), format_bytes(slot->memory.kv_bytes));
  try {
    slot->child = ChildProcess::start(
        io_, {.program = options_.program, .arguments = std::move(arguments), .name = slot->name()},
        {.on_status = [this, slot](const ChildStatus& status) { child_reported(slot, status); },
         .on_end = [this, slot](const ChildEnd& end) { child_ended(slot, end); }});
  } catch (const SetupError& error) {
    slot->is_loading = false;
    load_failed(slot, {.text = error.what()});
    residency_.ended(slot->name(), ChildClock::now());
    update();
  }
}

void ModelPool::child_reported(const SlotPtr& slot, const ChildStatus& status) {
  const auto ready = [&](const ChildReady& report) {
    if (!std::exchange(slot->is_loading, false)) return;
    slot->generation = slot->starting_generation;
    slot->max_model_len = report.max_model_len;
    slot->takes_images = report.takes_images;
    slot->failure.reset();
    slot->failures = 0;
    slot->restarts.loaded(ChildClock::now());
    residency_.loaded(slot->name(), ChildClock::now());
    spdlog::info("loaded {}", slot->name());
    publish({.model = slot->name(), .status = "loaded"});
    update();
  };
  std::visit(
      Overloaded{[&](const ChildProgress& progress) {
                   slot->progress = progress;
                   publish({.model = slot->name(), .status = "loading", .progress = progress});
                 },
                 [&](const ChildReady& report) { ready(report); },
                 [&](const ChildError& error) { slot->child_error = error.message; },
                 [](const ChildPlan&) {}},
      status);
}

void ModelPool::child_ended(const SlotPtr& slot, const ChildEnd& end) {
  slot->child.reset();
  const bool was_ready = std::exchange(slot->generation, 0) != 0;
  const bool was_loading = std::exchange(slot->is_loading, false);
  const bool was_stopped = std::exchange(slot->is_unload_requested, false);
  if (was_ready && !is_shutting_down_) {
    died(slot, end);
  } else if (was_loading && !was_stopped) {
    const bool has_reason = !slot->child_error.empty();
    load_failed(slot, {.status = has_reason ? 400 : 503,
                       .text = has_reason ? slot->child_error : reason_of(slot->name(), end),
                       .exit_code = end.exit_code()});
  } else {
    spdlog::info("unloaded {}", slot->name());
    publish({.model = slot->name(), .status = "unloaded"});
  }
  residency_.ended(slot->name(), ChildClock::now());
  update();
}

// Requests that wait now fail. Further ones fail at once until it is tried again.
void ModelPool::load_failed(const SlotPtr& slot, LoadFailure failure) {
  failure.until =
      ChildClock::now() + kFirstRetry * (1 << std::min(slot->failures++, kMostDoublings));
  spdlog::warn("{} could not be loaded: {}", slot->name(), failure.text);
  slot->failure = failure;
  fail_waiters(*slot, RequestError(failure.status, "model", failure.text));
  publish({.model = slot->name(), .status = "unloaded", .error = failure.text});
}

void ModelPool::died(const SlotPtr& slot, const ChildEnd& end) {
  slot->restarts.died(ChildClock::now());
  spdlog::error("the process of {} {}", slot->name(), end.describe());
  publish({.model = slot->name(),
           .status = "unloaded",
           .error = fmt::format("its process {}", end.describe())});
  if (slot->model->pinned)
    boost::asio::co_spawn(io_, load_quietly(slot->name()), boost::asio::detached);
}

}  // namespace octavo::front

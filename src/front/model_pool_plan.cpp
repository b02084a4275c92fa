// The memory plans of models: made by short processes that load nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/overloaded.h"
#include "base/units.h"
#include "front/model_pool.h"

namespace octavo::front {
namespace {

constexpr int kMostPlanners = 4;

}  // namespace

std::string ModelPool::plan_key(const ModelSlot& slot) const {
  return fmt::format("{}\n{}", fmt::join(child_arguments(slot), "\n"), files_key(slot.plan->path));
}

// A plan holds until a file or a flag changes.
bool ModelPool::has_plan(const ModelSlot& slot) const {
  return slot.plan && slot.plan_key == plan_key(slot);
}

void ModelPool::request_plan(const SlotPtr& slot) {
  if (slot->planner || slot->wants_plan) return;
  slot->wants_plan = true;
  plans_waiting_.push_back(slot);
  publish({.model = slot->name(), .status = "loading"});
  plan_next();
}

void ModelPool::plan_next() {
  while (planners_ < kMostPlanners && !plans_waiting_.empty() && !is_shutting_down_) {
    const SlotPtr slot = plans_waiting_.front();
    plans_waiting_.pop_front();
    slot->wants_plan = false;
    if (!slot->waiters.empty()) start_planner(slot);
  }
}

void ModelPool::start_planner(const SlotPtr& slot) {
  std::vector<std::string> arguments = child_arguments(*slot);
  arguments.insert(arguments.end(),
                   {"--plan-only", fmt::format("--memory-fraction={}", options_.memory_fraction)});
  slot->plan.reset();
  slot->child_error.clear();
  slot->progress = {};
  const auto on_status = [this, slot](const ChildStatus& status) {
    std::visit(
        Overloaded{[&](const ChildProgress& progress) {
                     slot->progress = progress;
                     publish({.model = slot->name(), .status = "loading", .progress = progress});
                   },
                   [&](const ChildPlan& plan) { slot->plan = plan; },
                   [&](const ChildError& error) { slot->child_error = error.message; },
                   [](const ChildReady&) {}},
        status);
  };
  try {
    slot->planner = ChildProcess::start(
        io_, {.program = options_.program, .arguments = std::move(arguments), .name = slot->name()},
        {.on_status = on_status,
         .on_end = [this, slot](const ChildEnd& end) { planner_ended(slot, end); }});
    ++planners_;
  } catch (const SetupError& error) {
    load_failed(slot, {.text = error.what()});
  }
}

void ModelPool::planner_ended(const SlotPtr& slot, const ChildEnd& end) {
  slot->planner.reset();
  --planners_;
  const bool was_stopped = std::exchange(slot->is_unload_requested, false);
  if (slot->plan) {
    slot->plan_key = plan_key(*slot);
    residency_.limit_budget(slot->plan->budget_bytes -
                            std::min(slot->plan->budget_bytes, kFrontReserveBytes));
    use_plan(slot);
  } else if (was_stopped) {
    publish({.model = slot->name(), .status = "unloaded"});
  } else if (!slot->child_error.empty()) {
    load_failed(slot, {.status = 400, .text = slot->child_error, .exit_code = end.exit_code()});
  } else {
    load_failed(slot, {.text = fmt::format("the memory plan of {} failed: its process {}",
                                           slot->name(), end.describe()),
                       .exit_code = end.exit_code()});
  }
  plan_next();
}

void ModelPool::use_plan(const SlotPtr& slot) {
  const bool given = std::ranges::any_of(child_arguments(*slot), [](const std::string& argument) {
    return argument.starts_with("--kv-memory=");
  });
  slot->memory = plan_model_memory(
      *slot->plan, residency_.budget_bytes(),
      {.share = slot->model->kv_share.value_or(options_.kv_share), .is_given = given});
  if (const auto refusal = never_fits(*slot)) {
    fail_waiters(*slot, *refusal);
    publish({.model = slot->name(), .status = "unloaded", .error = refusal->what()});
    return update();
  }
  const auto waiters = slot->waiters;
  for (ModelWaiter* waiter : waiters)
    if (!waiter->has_demand && !waiter->is_open && !waiter->error) demand(slot, *waiter);
}

std::optional<RequestError> ModelPool::never_fits(const ModelSlot& slot) const {
  const uint64_t needed = slot.memory.limit_bytes;
  const uint64_t budget = residency_.budget_bytes();
  if (needed > budget) {
    return RequestError(
        400, "model",
        fmt::format(
            "{} needs {}, but all models together may use {}; choose a smaller model, lower "
            "max-model-len or kv-memory in --preset, or raise --memory-fraction",
            slot.name(), format_bytes(needed), format_bytes(budget)));
  }
  const auto most = residency_.most_bytes_for(slot.name());
  if (most && needed <= *most) return std::nullopt;
  return RequestError(
      400, "model",
      fmt::format("{} needs {} and does not fit besides the pinned models; pin fewer of them in "
                  "--preset, or raise {}",
                  slot.name(), format_bytes(needed), most ? "--memory-fraction" : "--models-max"));
}

}  // namespace octavo::front

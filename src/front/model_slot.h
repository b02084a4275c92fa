// model_slot.h - what a pool knows about one model: its process, its waiting requests and its
// failures. I/O thread only. No MLX.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "front/catalog.h"
#include "front/child_process.h"
#include "front/machine_plan.h"
#include "front/restarts.h"

namespace octavo::front {

// A request that waits for a model.
struct ModelWaiter {
  explicit ModelWaiter(boost::asio::io_context& io) : woken(io) {}

  boost::asio::steady_timer woken;  // expires at the load timeout; cancelled earlier to wake it
  bool has_demand = false;          // counted by the residency
  bool is_open = false;             // granted, by the child below
  uint64_t generation = 0;
  std::string socket = {};
  std::optional<RequestError> error = {};
};

// Why a model cannot be loaded. Requests get it at once until `until`; then loading is tried again.
struct LoadFailure {
  int status = 503;
  std::string text = {};
  int exit_code = 0;
  std::chrono::steady_clock::time_point until = {};
};

struct ModelSlot {
  explicit ModelSlot(CatalogModelPtr catalog_model) : model(std::move(catalog_model)) {}

  const std::string& name() const { return model->name; }
  bool is_running() const { return child || planner || is_loading; }
  // Whether nothing is lost if the slot is forgotten.
  bool is_unused() const { return !is_running() && waiters.empty(); }

  CatalogModelPtr model;
  std::list<ModelWaiter*> waiters = {};  // the first is granted first

  // The plan of the files and flags that `plan_key` stands for.
  std::string plan_key = {};
  std::optional<ChildPlan> plan = {};
  ModelMemory memory = {};
  std::shared_ptr<ChildProcess> planner = nullptr;
  bool wants_plan = false;  // waits for a planner

  std::shared_ptr<ChildProcess> child = nullptr;
  std::unique_ptr<boost::asio::steady_timer> start_delay = nullptr;
  bool is_loading = false;
  bool is_load_requested = false;  // by a route that does not wait for it; one waits for all
  bool is_unload_requested = false;
  std::string socket = {};
  uint64_t generation = 0;  // of the child; 0: none that is ready
  uint64_t starting_generation = 0;
  std::string child_error = {};
  ChildProgress progress = {};
  int max_model_len = 0;
  bool takes_images = false;

  std::optional<LoadFailure> failure = {};
  int failures = 0;  // in a row
  Restarts restarts = {};
};

}  // namespace octavo::front

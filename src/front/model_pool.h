// model_pool.h - loads and unloads models: one process per loaded model, within the memory of this
// machine. I/O thread only. No MLX.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "front/catalog_scanner.h"
#include "front/model_slot.h"
#include "front/residency.h"
#include "front/socket_folder.h"
#include "front/upstreams.h"

namespace octavo::front {

struct ModelPoolOptions {
  std::string program = {};                   // octavo
  std::vector<std::string> child_flags = {};  // of octavo serve, for every model
  CatalogOptions catalog = {};
  std::string state_dir = {};  // each model has a folder in it; empty: none
  double memory_fraction = 0.9;
  uint64_t budget_bytes = 0;  // of all models; see models_budget()
  double kv_share = 0.2;
  int models_max = 0;  // 0: as many as fit
  KeepAlive keep_alive = {};
  std::chrono::milliseconds load_timeout{300'000};
  std::chrono::milliseconds stop_timeout{10'000};  // then SIGKILL
};

// A change of a model's state, for subscribers.
struct ModelEvent {
  std::string model = {};
  std::string status = {};  // "loading", "loaded", "unloaded"
  std::optional<ChildProgress> progress = {};
  std::string error = {};  // of an unloaded model: why loading failed, or how its process ended
};

struct ModelStatus {
  CatalogModelPtr model = nullptr;
  std::string value = "unloaded";  // "unloaded", "loading", "loaded"
  std::string error = {};          // why loading failed
  int exit_code = 0;
  ChildProgress progress = {};
  std::optional<LoadedModel> loaded = {};
  pid_t pid = 0;
  int max_model_len = 0;
  bool takes_images = false;
};

class ModelPool : public Upstreams {
 public:
  // Throws SetupError if a model that was named does not exist.
  ModelPool(boost::asio::io_context& io, ModelPoolOptions options);
  // Kills the processes.
  ~ModelPool() override;
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;

  Awaitable<UpstreamLease> acquire(const std::string& model,
                                   const AcquireOptions& options) override;
  std::vector<LoadedModel> loaded() const override;
  std::optional<std::string> default_model() const override;
  std::vector<std::string> known_names() const override;

  // Starts to load the models of --preload and of the preset; failures are logged.
  void preload();
  // Starts to load a model. Throws RequestError(404).
  Awaitable<void> load(std::string model);
  // Unloads it once its open requests have ended; ends a load or a download. Throws RequestError:
  // 404, or 400 if it is not loaded.
  Awaitable<void> unload(std::string model);
  // Ends all processes and removes their sockets. Call it last.
  Awaitable<void> shut_down();

  // All known models, after a new scan of the folders.
  Awaitable<std::vector<ModelStatus>> statuses();
  Awaitable<ModelStatus> status(std::string model);
  // Those with a process.
  std::vector<ModelStatus> running() const;
  boost::asio::io_context& io() { return io_; }
  uint64_t budget_bytes() const { return residency_.budget_bytes(); }
  uint64_t used_bytes() const { return residency_.used_bytes(); }

  using Subscriber = std::function<void(const ModelEvent&)>;
  uint64_t subscribe(Subscriber subscriber);
  void unsubscribe(uint64_t id);

 private:
  using SlotPtr = std::shared_ptr<ModelSlot>;
  using Time = std::chrono::steady_clock::time_point;
  class Wait;

  SlotPtr slot_of(const CatalogModelPtr& model);
  void forget_unused_slots();
  Awaitable<void> wait_for_death(SlotPtr slot);
  std::string time_limit_text(const ModelSlot& slot) const;

  // model_pool_status.cpp
  ModelStatus status_of(const CatalogModelPtr& model) const;
  LoadedModel loaded_model(const ModelSlot& slot, const Residency::Entry& entry) const;
  void publish(ModelEvent event);

  // model_pool_plan.cpp
  std::string plan_key(const ModelSlot& slot) const;
  bool has_plan(const ModelSlot& slot) const;
  void request_plan(const SlotPtr& slot);
  void start_planner(const SlotPtr& slot);
  void planner_ended(const SlotPtr& slot, const ChildEnd& end);
  void plan_next();
  void use_plan(const SlotPtr& slot);
  std::optional<RequestError> never_fits(const ModelSlot& slot) const;

  // model_pool_children.cpp
  std::vector<std::string> child_arguments(const ModelSlot& slot) const;
  void start_child(const SlotPtr& slot);
  void spawn_child(const SlotPtr& slot);
  void child_reported(const SlotPtr& slot, const ChildStatus& status);
  void child_ended(const SlotPtr& slot, const ChildEnd& end);
  void load_failed(const SlotPtr& slot, LoadFailure failure);
  void died(const SlotPtr& slot, const ChildEnd& end);

  void demand(const SlotPtr& slot, ModelWaiter& waiter);
  void grant(ModelSlot& slot);
  void fail_waiters(ModelSlot& slot, const RequestError& error);
  void close(const SlotPtr& slot, uint64_t generation, const std::optional<KeepAlive>& keep_alive);
  // Carries out what the residency decides. Call after every change.
  void update();
  Awaitable<void> load_quietly(std::string model);
  Awaitable<void> load_on_request(SlotPtr slot);

  boost::asio::io_context& io_;
  ModelPoolOptions options_;
  std::optional<SocketFolder> folder_{std::in_place};  // nothing after shut_down()
  CatalogScanner scanner_;
  Residency residency_;
  std::map<std::string, SlotPtr> slots_;
  std::deque<SlotPtr> plans_waiting_;
  int planners_ = 0;
  uint64_t generations_ = 0;
  bool is_updating_ = false;
  bool is_update_due_ = false;
  bool is_shutting_down_ = false;
  boost::asio::steady_timer next_decision_;
  std::map<uint64_t, Subscriber> subscribers_;
  uint64_t subscriptions_ = 0;
  // Expires with the pool; leases may live longer.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace octavo::front

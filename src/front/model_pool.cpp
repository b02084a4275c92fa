#include "front/model_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/log.h"
#include "base/units.h"

namespace octavo::front {

namespace asio = boost::asio;

namespace {

using PoolClock = std::chrono::steady_clock;

constexpr size_t kMostSlots = 1024;
constexpr std::chrono::milliseconds kDeathTick{20};

}  // namespace

// A waiting request; what it holds is given back if its coroutine ends early.
class ModelPool::Wait {
 public:
  Wait(ModelPool& pool, SlotPtr slot) : pool_(pool), slot_(std::move(slot)), waiter_(pool.io_) {
    slot_->waiters.push_back(&waiter_);
  }
  ~Wait() {
    if (waiter_.is_open) {
      pool_.close(slot_, waiter_.generation, std::nullopt);
      return;
    }
    std::erase(slot_->waiters, &waiter_);
    if (!waiter_.has_demand) return;
    pool_.residency_.stop_waiting(slot_->name());
    pool_.update();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  ModelWaiter& waiter() { return waiter_; }

  // Returns when it is granted, has failed, or the time is over.
  Awaitable<void> run(Time deadline) {
    waiter_.woken.expires_at(deadline);
    boost::system::error_code ignored;
    if (!waiter_.is_open && !waiter_.error)
      co_await waiter_.woken.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  // The open request belongs to the lease from now on. `asked`: the name in the request.
  UpstreamLease lease(const std::string& asked, std::optional<KeepAlive> keep_alive) {
    const bool is_adapter =
        std::ranges::count(slot_->model->adapters, asked, &api::AdapterSource::name) > 0;
    UpstreamLease::Child child{.model = is_adapter ? asked : slot_->name(),
                               .socket = std::move(waiter_.socket),
                               .generation = waiter_.generation};
    auto release = [pool = &pool_, alive = std::weak_ptr(pool_.alive_), slot = slot_,
                    generation = waiter_.generation, keep_alive] {
      if (alive.lock()) pool->close(slot, generation, keep_alive);
    };
    waiter_.is_open = false;
    return {std::move(child), std::move(release)};
  }

 private:
  ModelPool& pool_;
  SlotPtr slot_;
  ModelWaiter waiter_;
};

ModelPool::ModelPool(asio::io_context& io, ModelPoolOptions options)
    : io_(io),
      options_(std::move(options)),
      scanner_(io, options_.catalog),
      residency_({.budget_bytes = options_.budget_bytes, .models_max = options_.models_max}),
      next_decision_(io) {}

ModelPool::~ModelPool() {
  alive_.reset();
  next_decision_.cancel();
  for (const auto& [name, slot] : slots_) {
    slot->start_delay.reset();
    for (const auto& process : {slot->child, slot->planner}) {
      if (!process) continue;
      process->forget();
      process->stop(std::chrono::milliseconds(0));
    }
  }
}

Awaitable<UpstreamLease> ModelPool::acquire(const std::string& model,
                                            const AcquireOptions& options) {
  const auto deadline = PoolClock::now() + options_.load_timeout;
  const SlotPtr slot = slot_of(co_await scanner_.find(model));
  if (options.deaths > 0) co_await wait_for_death(slot);
  if (is_shutting_down_) throw RequestError(503, "", "the server is shutting down");
  if (!options.autoload && !slot->is_running()) {
    throw RequestError(503, "model",
                       fmt::format("{} is not loaded, and the request says autoload=false; load it "
                                   "with POST /models/load",
                                   slot->name()));
  }
  if (slot->failure && PoolClock::now() < slot->failure->until)
    throw RequestError(slot->failure->status, "model", slot->failure->text);
  Wait wait(*this, slot);
  demand(slot, wait.waiter());
  co_await wait.run(deadline);
  if (wait.waiter().error) throw RequestError(*wait.waiter().error);
  if (!wait.waiter().is_open) throw RequestError(503, "model", time_limit_text(*slot));
  co_return wait.lease(model, options.keep_alive);
}

// A client's connection to a dead process may end before its status socket does. Without this, the
// request would get the same process again.
Awaitable<void> ModelPool::wait_for_death(SlotPtr slot) {
  asio::steady_timer timer(io_);
  do {
    timer.expires_after(kDeathTick);
    co_await timer.async_wait(asio::use_awaitable);
  } while (slot->child && slot->child->is_ending());
}

std::string ModelPool::time_limit_text(const ModelSlot& slot) const {
  const auto seconds = options_.load_timeout.count() / 1000;
  if (slot.planner && slot.model->downloads)
    return fmt::format("{} is still being downloaded after {} s (--load-timeout); try again later",
                       slot.name(), seconds);
  if (slot.is_loading)
    return fmt::format("{} is still loading after {} s (--load-timeout); try again later",
                       slot.name(), seconds);
  if (slot.generation != 0)
    return fmt::format(
        "the requests of {} run one at a time, because its process died twice within a minute; try "
        "again later",
        slot.name());
  return fmt::format(
      "{} was not loaded within {} s (--load-timeout), because models with open requests use the "
      "memory; try again later",
      slot.name(), seconds);
}

void ModelPool::demand(const SlotPtr& slot, ModelWaiter& waiter) {
  const Residency::Entry* entry = residency_.find(slot->name());
  const bool is_resident = entry != nullptr && entry->state != Residency::State::kUnloaded &&
                           entry->state != Residency::State::kWaiting;
  if (!is_resident && !has_plan(*slot)) return request_plan(slot);
  if (!is_resident) {
    if (auto refusal = never_fits(*slot)) {
      waiter.error = std::move(refusal);
      waiter.woken.cancel();
      return;
    }
  }
  residency_.wait({.model = slot->name(),
                   .bytes = slot->memory.limit_bytes,
                   .pinned = slot->model->pinned,
                   .keep_alive = slot->model->keep_alive.value_or(options_.keep_alive)},
                  PoolClock::now());
  waiter.has_demand = true;
  update();
}

void ModelPool::grant(ModelSlot& slot) {
  while (!slot.waiters.empty() && slot.waiters.front()->has_demand &&
         residency_.can_open(slot.name()) && !slot.child->is_ending()) {
    const auto now = PoolClock::now();
    if (residency_.find(slot.name())->open > 0 && slot.restarts.one_at_a_time(now)) return;
    ModelWaiter& first = *slot.waiters.front();
    slot.waiters.pop_front();
    residency_.open_waiting(slot.name(), now);
    first.has_demand = false;
    first.is_open = true;
    first.generation = slot.generation;
    first.socket = slot.socket;
    first.woken.cancel();
  }
}

void ModelPool::fail_waiters(ModelSlot& slot, const RequestError& error) {
  for (ModelWaiter* waiter : std::exchange(slot.waiters, {})) {
    if (std::exchange(waiter->has_demand, false)) residency_.stop_waiting(slot.name());
    waiter->error = error;
    waiter->woken.cancel();
  }
}

void ModelPool::close(const SlotPtr& slot, uint64_t generation,
                      const std::optional<KeepAlive>& keep_alive) {
  // The requests of a process that died were closed with it.
  if (slot->generation != generation || generation == 0) return;
  residency_.close(slot->name(), keep_alive, PoolClock::now());
  update();
}

void ModelPool::update() {
  is_update_due_ = true;
  if (std::exchange(is_updating_, true)) return;
  while (std::exchange(is_update_due_, false)) {
    for (const auto& [name, slot] : slots_) grant(*slot);
    if (is_shutting_down_) continue;
    for (const Residency::Action& action : residency_.decide(PoolClock::now())) {
      const SlotPtr slot = slots_.at(action.model);
      if (action.kind == Residency::Action::Kind::kStart) {
        start_child(slot);
      } else {
        slot->generation = 0;
        slot->child->stop(options_.stop_timeout);
      }
    }
  }
  is_updating_ = false;
  const auto next = residency_.next_decision(PoolClock::now());
  if (!next || is_shutting_down_) {
    next_decision_.cancel();
    return;
  }
  next_decision_.expires_at(*next);
  next_decision_.async_wait([this](const boost::system::error_code& error) {
    if (!error) update();
  });
}

ModelPool::SlotPtr ModelPool::slot_of(const CatalogModelPtr& model) {
  forget_unused_slots();
  SlotPtr& slot = slots_[model->name];
  if (!slot) slot = std::make_shared<ModelSlot>(model);
  if (slot->is_unused()) slot->model = model;  // a new scan may have found another file
  return slot;
}

void ModelPool::forget_unused_slots() {
  if (slots_.size() < kMostSlots) return;
  std::erase_if(slots_, [&](const auto& each) {
    return each.second->is_unused() && residency_.find(each.first) == nullptr;
  });
}

void ModelPool::preload() {
  std::vector<std::string> names = options_.catalog.preload;
  for (const CatalogModelPtr& model : scanner_.catalog().models())
    if (model->preload) names.push_back(model->name);
  for (const std::string& name : names) asio::co_spawn(io_, load_quietly(name), asio::detached);
}

// Loading for a moment's use: the model then stays for its keep-alive time.
Awaitable<void> ModelPool::load_quietly(std::string model) {
  const AcquireOptions options;
  try {
    co_await acquire(model, options);
  } catch (const std::exception& error) {
    spdlog::warn("{} was not loaded: {}", model, error.what());
  }
}

Awaitable<void> ModelPool::load_on_request(SlotPtr slot) {
  co_await load_quietly(slot->name());
  slot->is_load_requested = false;
}

Awaitable<void> ModelPool::load(std::string model) {
  const CatalogModelPtr found = co_await scanner_.find(std::move(model));
  const SlotPtr slot = slot_of(found);
  if (slot->failure && PoolClock::now() < slot->failure->until)
    throw RequestError(slot->failure->status, "model", slot->failure->text);
  // No limit of open requests counts what waits here, so it is one per model.
  if (!std::exchange(slot->is_load_requested, true))
    asio::co_spawn(io_, load_on_request(slot), asio::detached);
}

Awaitable<void> ModelPool::unload(std::string model) {
  const CatalogModelPtr found = co_await scanner_.find(std::move(model));
  const SlotPtr slot = slot_of(found);
  if (slot->is_unused())
    throw RequestError(400, "model", fmt::format("{} is not loaded", slot->name()));
  const RequestError unloaded(503, "model",
                              fmt::format("{} was unloaded by a request", slot->name()));
  if (slot->generation != 0) {
    residency_.unload(slot->name());
    update();
    co_return;
  }
  fail_waiters(*slot, unloaded);
  slot->is_unload_requested = slot->is_running();
  for (const auto& process : {slot->child, slot->planner})
    if (process) process->stop(options_.stop_timeout);
  update();
}

Awaitable<void> ModelPool::shut_down() {
  is_shutting_down_ = true;
  next_decision_.cancel();
  const RequestError closing(503, "", "the server is shutting down");
  for (const auto& [name, slot] : slots_) {
    fail_waiters(*slot, closing);
    slot->is_unload_requested = slot->is_running();
    for (const auto& process : {slot->child, slot->planner})
      if (process) process->stop(options_.stop_timeout);
  }
  asio::steady_timer timer(io_);
  const auto any_left = [&] {
    return std::ranges::any_of(
        slots_, [](const auto& each) { return each.second->child || each.second->planner; });
  };
  const auto deadline = PoolClock::now() + options_.stop_timeout + std::chrono::seconds(2);
  while (any_left() && PoolClock::now() < deadline) {
    timer.expires_after(std::chrono::milliseconds(10));
    co_await timer.async_wait(asio::use_awaitable);
  }
  folder_.reset();
}

}  // namespace octavo::front

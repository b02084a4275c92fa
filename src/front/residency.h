// residency.h - decides which models are loaded: who gets memory, who is unloaded for it, and who
// waits. A state machine without I/O: its owner starts and stops the processes. One thread. No MLX.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "front/keep_alive.h"

namespace octavo::front {

struct ResidencyOptions {
  uint64_t budget_bytes = 0;
  int models_max = 0;  // 0: as many as fit into the budget
  // A model that waits for busy ones gets its turn after this time: the least recently used of them
  // takes no further requests and is unloaded once its open ones end. Until then, models that fit
  // without unloading others may overtake it.
  std::chrono::milliseconds turn{5000};
};

class Residency {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class State : uint8_t {
    kUnloaded,
    kWaiting,  // for memory
    kLoading,  // its bytes are taken from here on
    kLoaded,
    kUnloading,  // until its process has ended
  };

  struct Demand {
    std::string model = {};
    uint64_t bytes = 0;  // of its memory plan
    bool pinned = false;
    KeepAlive keep_alive = {};
  };

  // What the owner must do now.
  struct Action {
    enum class Kind : uint8_t { kStart, kStop };
    Kind kind = Kind::kStart;
    std::string model = {};
  };

  struct Entry {
    State state = State::kUnloaded;
    uint64_t bytes = 0;
    bool pinned = false;
    bool leaving = false;  // loaded, but takes no further requests
    int open = 0;
    int waiting = 0;
    bool served = false;  // has had a request since it was loaded
    KeepAlive keep_alive = {};
    Time last_use = {};
    Time since = {};                   // of the state
    std::optional<Time> expires = {};  // unloaded then, if idle
  };

  explicit Residency(ResidencyOptions options) : options_(options) {}

  // Lowers the budget, for example to what a GPU allows. Does not unload anything by itself.
  void limit_budget(uint64_t bytes);
  uint64_t budget_bytes() const { return options_.budget_bytes; }
  // Bytes of models that are loading, loaded or unloading.
  uint64_t used_bytes() const;
  // What a model may need at most to be loaded at some time: the budget without other, pinned models.
  // Nothing if those are as many as models_max.
  std::optional<uint64_t> most_bytes_for(const std::string& model) const;

  // One more request waits for the model, which is loaded when its turn comes.
  void wait(const Demand& demand, Time now);
  // One of them gave up.
  void stop_waiting(const std::string& model);
  // Whether a request may use the model now.
  bool can_open(const std::string& model) const;
  // A waiting request starts. Only if can_open().
  void open_waiting(const std::string& model, Time now);
  // An open request ended. `keep_alive`: of that request.
  void close(const std::string& model, const std::optional<KeepAlive>& keep_alive, Time now);
  // Unloads the model once its open requests have ended; it may be loaded again for waiting ones.
  void unload(const std::string& model);

  // Of the process: it is ready, or it has ended, as asked for or not.
  void loaded(const std::string& model, Time now);
  void ended(const std::string& model, Time now);

  // Call after every change and at next_decision().
  std::vector<Action> decide(Time now);
  std::optional<Time> next_decision(Time now) const;

  const Entry* find(const std::string& model) const;
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  using Entries = std::map<std::string, Entry>;

  Entry& entry(const std::string& model);
  void set_state(Entry& entry, State state, Time now);
  void enqueue(const std::string& model, Entry& entry, Time now);
  bool fits(uint64_t bytes, uint64_t used, int count) const;
  int resident_count() const;
  void stop(const std::string& model, Entry& entry, Time now, std::vector<Action>& actions);
  void stop_expired(Time now, std::vector<Action>& actions);
  bool start_if_it_fits(const std::string& model, Time now, std::vector<Action>& actions);
  // Returns whether the model will fit once the others have ended.
  bool make_space(const std::string& model, Time now, std::vector<Action>& actions);
  std::vector<Entries::iterator> victims(bool busy, Time now);
  void forget_unused();

  ResidencyOptions options_;
  Entries entries_;
  std::deque<std::string> queue_;  // models in kWaiting, the longest waiting first
};

}  // namespace octavo::front

#include "engine/cluster/worker_loop.h"

#include <exception>
#include <utility>
#include <variant>
#include <vector>

#include "base/overloaded.h"
#include "base/thread_name.h"

namespace octavo {

WorkerLoop::WorkerLoop(WorkerChannel& channel, TensorLinks& links, WorkerSteps& steps,
                       PageMemory& pages)
    : channel_(channel), links_(links), steps_(steps), pages_(pages) {
  steps_.on_input([this] { notify(); });
  reader_ = std::thread([this] { read_commands(); });
}

WorkerLoop::~WorkerLoop() {
  if (!ended_) links_.stop();
  reader_.join();
}

void WorkerLoop::notify() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void WorkerLoop::read_commands() {
  name_this_thread("commands");
  bool last = false;
  while (!last) {
    std::optional<WorkerChannel::Command> command;
    std::optional<std::string> failure;
    try {
      command = channel_.next();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    last = failure || std::holds_alternative<WorkerChannel::Shutdown>(*command);
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    if (command) {
      if (std::holds_alternative<WorkerChannel::Drop>(*command)) ++drops_;
      commands_.push_back(std::move(*command));
    }
    changed_.notify_all();
  }
}

// Commands first: they tell which input to expect, and a page may be read while steps run. A step
// that takes long to queue is started only when the one before has been read, as is its result.
WorkerLoop::Work WorkerLoop::wait() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (failure_) throw ClusterError(*failure_);
    const bool drop_is_next =
        !commands_.empty() && std::holds_alternative<WorkerChannel::Drop>(commands_.front());
    const bool has_steps = !waiting_.empty() || steps_.steps_in_flight() > 0;
    if (!commands_.empty() && !(drop_is_next && has_steps)) return Work::kCommand;
    const bool has_input = !waiting_.empty() && steps_.has_input();
    const size_t in_flight = steps_.steps_in_flight();
    if (has_input &&
        (in_flight == 0 || (in_flight == 1 && steps_.queues_at_once(waiting_.front().batch))))
      return Work::kStart;
    if (in_flight > 0) return Work::kFinish;
    changed_.wait(lock);
  }
}

void WorkerLoop::run() {
  try {
    run_commands();
  } catch (const std::exception& error) {
    report(error.what());
    throw;
  }
}

// Rank 0 then ends the cluster, which also ends the thread that reads commands.
void WorkerLoop::report(const std::string& error) {
  try {
    channel_.send_error(error);
  } catch (const ClusterError&) {
    // It has ended already.
  }
}

void WorkerLoop::run_commands() {
  while (true) {
    switch (wait()) {
      case Work::kCommand: {
        std::unique_lock lock(mutex_);
        WorkerChannel::Command command = std::move(commands_.front());
        commands_.pop_front();
        lock.unlock();
        if (!carry_out(command)) return;
        break;
      }
      case Work::kStart:
        start_oldest();
        break;
      case Work::kFinish:
        finish_oldest();
        break;
    }
  }
}

bool WorkerLoop::carry_out(WorkerChannel::Command& command) {
  return std::visit(Overloaded{
                        [&](StepMessage& step) {
                          steps_.expect(step);
                          waiting_.push_back(std::move(step));
                          return true;
                        },
                        [&](WorkerChannel::Drop) {
                          drop();
                          return true;
                        },
                        [&](const WorkerChannel::CopyOut& wanted) {
                          std::vector<std::byte> bytes(pages_.bytes_per_page());
                          pages_.copy_out(wanted.page, bytes);
                          channel_.send_page(wanted.page, bytes);
                          return true;
                        },
                        [&](const WorkerChannel::CopyIn& given) {
                          if (given.bytes.size() != pages_.bytes_per_page())
                            throw WireError("rank 0 sent a page of another size");
                          pages_.copy_in(given.page, given.bytes);
                          return true;
                        },
                        [&](WorkerChannel::Shutdown) {
                          const std::lock_guard lock(mutex_);
                          ended_ = true;
                          return false;
                        },
                    },
                    command);
}

void WorkerLoop::start_oldest() {
  const StepMessage step = std::move(waiting_.front());
  waiting_.pop_front();
  bool is_dropped = false;
  {
    const std::lock_guard lock(mutex_);
    is_dropped = drops_ > 0;
  }
  steps_.start(step, is_dropped);
}

void WorkerLoop::finish_oldest() { channel_.send_result(steps_.finish()); }

void WorkerLoop::drop() {
  steps_.drop();
  {
    const std::lock_guard lock(mutex_);
    --drops_;
  }
  channel_.acknowledge_drop();
}

}  // namespace octavo

#include "scheduler/engine_loop.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDiskPoll{100};

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Adds its own lifetime to `sum`.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum) {}
  ~Timed() { sum_ += seconds_between(start_, Clock::now()); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& sum_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

EngineLoop::EngineLoop(LoopOptions options, PrefixCache& prefixes, Scheduler& scheduler,
                       StepRunner& runner)
    : options_(options),
      limits_{.max_model_len = scheduler.options().max_model_len,
              .vocab = scheduler.options().vocab,
              .draws = scheduler.options().draws,
              .max_image_tokens = scheduler.options().images.enabled
                                      ? scheduler.options().images.max_image_tokens
                                      : 0,
              .max_whole_prompt = scheduler.options().longest_whole_prompt()},
      prefixes_(prefixes),
      scheduler_(scheduler),
      runner_(runner),
      timer_(scheduler.options().pipeline_stages) {
  publish_stats();
}

RequestId EngineLoop::submit(Request request, UpdateSink sink) {
  validate(request, limits_);
  const std::lock_guard lock(mutex_);
  if (closed_) throw RequestError(503, "", "the server is shutting down");
  const auto tokens = static_cast<int64_t>(request.prompt.size());
  if (open_requests_ >= options_.max_open_requests ||
      (open_requests_ > 0 && open_tokens_ + tokens > options_.max_open_tokens)) {
    throw RequestError(
        429, "",
        fmt::format("{} requests with prompts of {} tokens are open; try again later",
                    open_requests_, open_tokens_));
  }
  ++open_requests_;
  open_tokens_ += tokens;
  const RequestId id = next_id_++;
  inbox_.emplace_back(Submit{id, std::move(request), std::move(sink)});
  work_.notify_one();
  return id;
}

void EngineLoop::abort(RequestId id, std::optional<int> only_choice) {
  const std::lock_guard lock(mutex_);
  inbox_.emplace_back(Abort{id, only_choice});
  work_.notify_one();
}

void EngineLoop::reset_prefix_cache() {
  const std::lock_guard lock(mutex_);
  inbox_.emplace_back(ResetPrefixes{});
  work_.notify_one();
}

void EngineLoop::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool EngineLoop::wait_until_idle(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [&] { return open_requests_ == 0; });
}

void EngineLoop::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  work_.notify_one();
}

void EngineLoop::stop() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  stopping_ = true;
  work_.notify_one();
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.open_requests = open_requests_;
  return stats;
}

Clock::time_point EngineLoop::heartbeat() const {
  const std::lock_guard lock(mutex_);
  return busy_ ? heartbeat_ : Clock::now();
}

void EngineLoop::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      busy_ = !scheduler_.idle();
      if (!busy_) {
        timer_.pause();
        work_.wait(lock, [&] { return stopping_ || !inbox_.empty(); });
      }
      // Arriving pages wake the loop, but nothing signals a stuck disk, so poll.
      if (scheduler_.waits_for_disk()) {
        work_.wait_for(lock, kDiskPoll, [&] { return stopping_ || woken_ || !inbox_.empty(); });
      }
      woken_ = false;
      busy_ = true;
      heartbeat_ = Clock::now();
      if (stopping_ && inbox_.empty() && scheduler_.idle()) break;
    }
    {
      const Timed timed(times_.scheduling);
      for (Command& command : take_commands()) carry_out(std::move(command));
    }
    if (scheduler_.options().pipeline_stages == 1) {
      step();
    } else {
      fill_stages();
    }
    publish_stats();
  }
}

std::vector<EngineLoop::Command> EngineLoop::take_commands() {
  const std::lock_guard lock(mutex_);
  std::vector<Command> commands = std::exchange(inbox_, {});
  if (stopping_) {
    for (const auto& [id, open] : open_) commands.emplace_back(Abort{id, std::nullopt});
  }
  return commands;
}

void EngineLoop::carry_out(Command command) {
  if (auto* submit = std::get_if<Submit>(&command)) {
    open_[submit->id] = {std::move(submit->sink), submit->request.n,
                         static_cast<int64_t>(submit->request.prompt.size())};
    scheduler_.add(submit->id, std::move(submit->request));
  } else if (const auto* abort = std::get_if<Abort>(&command)) {
    deliver(scheduler_.abort(abort->id, abort->only_choice));
  } else {
    scheduler_.reset_prefix_cache();
  }
}

std::optional<Batch> EngineLoop::plan() {
  const Timed timed(times_.scheduling);
  return scheduler_.next();
}

template <typename Work>
bool EngineLoop::succeeds(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    recover(error.what());
  } catch (...) {
    recover("the device failed");  // Metal throws Objective-C exceptions
  }
  return false;
}

void EngineLoop::step() {
  const bool one_in_flight = scheduler_.steps_in_flight() > 0;
  const std::optional<Batch> batch = plan();
  OCTAVO_CHECK(batch || one_in_flight || scheduler_.idle() || scheduler_.waits_for_disk());
  succeeds([&] {
    // Starting a step that cannot be queued at once would delay the tokens of the previous step.
    const bool queue_first = batch && runner_.queues_at_once(*batch);
    if (queue_first) start(*batch);
    if (one_in_flight) finish_oldest();
    if (batch && !queue_first) start(*batch);
  });
}

void EngineLoop::fill_stages() {
  while (scheduler_.steps_in_flight() < scheduler_.options().most_steps()) {
    const std::optional<Batch> batch = plan();
    if (!batch) break;
    if (!succeeds([&] { start(*batch); })) return;
  }
  const bool some_in_flight = scheduler_.steps_in_flight() > 0;
  OCTAVO_CHECK(some_in_flight || scheduler_.idle() || scheduler_.waits_for_disk());
  if (some_in_flight) succeeds([&] { finish_oldest(); });
}

void EngineLoop::start(const Batch& batch) {
  const Timed timed(times_.queueing);
  if (batch.rows() > 0) step_rows_.observe(batch.rows());
  const bool alone = timer_.idle();
  const bool all_draw =
      batch.sampling.size() == batch.tokens.size() && batch.image_work.encodes == 0;
  timer_.start(all_draw ? batch.rows() : 0, Clock::now());
  runner_.start(batch);
  const auto last_result = timer_.last_result();
  // In a pipeline, no step waits for drafts, so there is no gap to measure.
  if (alone && all_draw && last_result && scheduler_.options().pipeline_stages == 1)
    scheduler_.costs().observe_gap(seconds_between(*last_result, Clock::now()));
}

void EngineLoop::finish_oldest() {
  StepResult result;
  {
    const Timed timed(times_.waiting);
    result = runner_.finish();
  }
  const StepTimer::Took took = timer_.finish(Clock::now());
  step_seconds_.observe(took.since_result);
  if (took.drawing_rows > 0) scheduler_.costs().observe_step(took.drawing_rows, took.seconds);
  scheduler_.step_took(took.seconds);
  const Timed timed(times_.scheduling);
  deliver(scheduler_.commit(result));
}

void EngineLoop::recover(const char* reason) {
  scheduler_.release_masks();
  runner_.drop();
  timer_.drop();
  deliver(scheduler_.fail(reason));
}

void EngineLoop::deliver(std::vector<Update> updates) {
  int ended = 0;
  int64_t ended_tokens = 0;
  for (Update& update : updates) {
    const auto open = open_.find(update.request);
    OCTAVO_CHECK(open != open_.end());
    const bool last = update.finish.has_value() && --open->second.choices == 0;
    if (!last) {
      open->second.sink(std::move(update));
      continue;
    }
    const UpdateSink sink = std::move(open->second.sink);
    ended_tokens += open->second.tokens;
    open_.erase(open);
    sink(std::move(update));
    ++ended;
  }
  if (ended == 0) return;
  // Published before callers learn that these requests ended, so that they see current stats.
  publish_stats();
  const std::lock_guard lock(mutex_);
  open_requests_ -= ended;
  open_tokens_ -= ended_tokens;
  if (open_requests_ == 0) idle_.notify_all();
}

void EngineLoop::publish_stats() {
  const std::lock_guard lock(mutex_);
  stats_.scheduler = scheduler_.stats();
  stats_.times = times_;
  stats_.adapters = scheduler_.adapter_use();
  stats_.step_rows = step_rows_;
  stats_.step_seconds = step_seconds_;
  stats_.page_count = prefixes_.pool().page_count();
  stats_.referenced_pages = prefixes_.pool().referenced_pages();
  stats_.cached_pages = prefixes_.pool().cached_pages();
}

}  // namespace octavo

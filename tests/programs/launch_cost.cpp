// Measures what a decode step costs the host on Metal: every launch is described, checked and looked up as
// on a Mac, and then dropped. What Metal's own calls cost is not included.
//
//   launch_cost MODEL [--rows 1,8,32] [--context 1024] [--steps 200]
//
// Prints a table, medians of the steps: the time in which our primitives allocate and describe their
// launches, and the whole processor time of the step's thread, which includes MLX's graph and the tasks
// that MLX queues for its CPU device, as it does not on a Mac.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "engine/runner.h"
#include "kernels/metal/simulator.h"
#include "models/model_description.h"

namespace octavo {
namespace {

class NoDevice : public metal::Simulator {
 public:
  NoDevice() { metal::set_simulator(this); }
  ~NoDevice() override { metal::set_simulator(nullptr); }
  bool executes() const override { return false; }
  void encoded(std::chrono::steady_clock::duration time) override { encoded_ += time; }
  void run(const metal::BoundLaunch&) override {}

  // Microseconds since the last call.
  double take_encoded() {
    return std::chrono::duration<double, std::micro>(std::exchange(encoded_, {})).count();
  }

 private:
  std::chrono::steady_clock::duration encoded_ = {};
};

int64_t all_launches() {
  int64_t sum = 0;
  for (const auto& [kernel, count] : launch_counts())
    if (kernel.ends_with(".metal")) sum += count;
  return sum;
}

// Processor time of this thread, which describes and encodes: the step itself runs nowhere.
double thread_microseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

struct StepTimes {
  double launches = 0;
  double encoding = 0;  // microseconds in our primitives
  double whole = 0;     // with building and traversing the graph
};

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size()) / 2;
  std::ranges::nth_element(times, middle);
  return *middle;
}

// `rows` sequences, each with one new token after context - 1 others.
StepTimes measure(const ModelDescription& description, const DecoderModel& model, int rows,
                  int context, int steps, NoDevice& device) {
  const CachePlan plan =
      plan_cache(description.plan.cache_specs(description.dtype, KvFormat::kPlain), 16);
  KvStore kv(plan, 1 + rows * plan.pages_for(context + 1), KernelPath::kNative);
  PagePool pool(kv.page_count());
  Runner runner(model, kv, {});
  const TokenId token = 1;
  std::vector<SequencePages> pages;
  pages.reserve(static_cast<size_t>(rows));  // the builder keeps references
  BatchBuilder builder(plan);
  for (int i = 0; i < rows; ++i) {
    SequencePages& sequence = pages.emplace_back(plan, pool);
    if (!sequence.grow_to(context)) throw std::runtime_error("pool too small");
    builder.want_logits(builder.add_sequence({&token, 1}, context - 1, sequence));
    sequence.state().advance(context - 1);
  }
  const Batch batch = builder.build();
  std::vector<double> encoding, whole;
  const int64_t before = all_launches();
  for (int step = 0; step < steps; ++step) {
    const double start = thread_microseconds();
    runner.logits(batch);
    whole.push_back(thread_microseconds() - start);
    encoding.push_back(device.take_encoded());
  }
  return {.launches = static_cast<double>(all_launches() - before) / steps,
          .encoding = median(encoding),
          .whole = median(whole)};
}

int run(const std::string& path, const std::vector<int>& rows, int context, int steps) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  const ModelDescription description = describe_model(checkpoint, std::nullopt);
  WeightSource source(checkpoint, nullptr);
  const DecoderModel model(description.plan, description.dtype, source);
  NoDevice device;
  fmt::print("| rows | launches | us per launch | us of launches per step | us per step |\n");
  fmt::print("|--:|--:|--:|--:|--:|\n");
  for (const int count : rows) {
    const StepTimes times = measure(description, model, count, context, steps, device);
    fmt::print("| {} | {:.0f} | {:.2f} | {:.0f} | {:.0f} |\n", count, times.launches,
               times.encoding / times.launches, times.encoding, times.whole);
  }
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  CLI::App app("Host time of Metal launches");
  std::string model;
  std::vector<int> rows{1, 8, 32};
  int context = 1024, steps = 200;
  app.add_option("model", model)->required();
  app.add_option("--rows", rows)->delimiter(',');
  app.add_option("--context", context);
  app.add_option("--steps", steps);
  CLI11_PARSE(app, argc, argv);
  return octavo::run(model, rows, context, steps);
}

#include "engine/run_worker.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/pipeline/stage_worker.h"
#include "engine/tensor/tensor_worker.h"
#include "kernels/runtime/device.h"

namespace octavo {
namespace {

// What goes wrong before the rank is ready is also reported to rank 0.
template <typename Worker>
void load_and_run(RankModel rank_model, WorkerChannel& channel, Engine::Progress progress) {
  std::optional<Worker> worker;
  try {
    worker.emplace(std::move(rank_model), channel, std::move(progress));
  } catch (const SetupError& error) {
    channel.send_error(error.what());
    throw;
  }
  worker->run();
}

RankModel wait_or_report(const Checkpoint& checkpoint, const EngineOptions& options,
                         WorkerChannel& channel) {
  try {
    return wait_for_setup(checkpoint, options, channel);
  } catch (const SetupError& error) {
    channel.send_error(error.what());
    throw;
  }
}

}  // namespace

void run_worker(const Checkpoint& checkpoint, const EngineOptions& options, WorkerChannel& channel,
                Engine::Progress progress) {
  use_device(options.device);
  RankModel rank_model = wait_or_report(checkpoint, options, channel);
  if (rank_model.setup.tensor) {
    load_and_run<TensorWorker>(std::move(rank_model), channel, std::move(progress));
  } else {
    load_and_run<StageWorker>(std::move(rank_model), channel, std::move(progress));
  }
}

}  // namespace octavo

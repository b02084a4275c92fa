#include "cli/serve_child.h"

#include <memory>

#include "base/error.h"
#include "cli/status_channel.h"
#include "engine/plan_encoder.h"
#include "engine/plan_engine.h"

namespace octavo {
namespace {

void report_plan(ServeFlags& flags) {
  flags.finish();
  flags.model.find();
  const EngineOptions options = flags.engine_options();
  set_compute_options(flags.model.compute_options());
  use_device(options.device);
  const Checkpoint checkpoint = Checkpoint::open(flags.model.model);
  const ModelDescription model = describe_model(checkpoint, options);
  const MemoryPlan plan = plan_engine_memory(model, options_for(model, options));
  flags.status->send(
      front::ChildPlan{.path = flags.model.model,
                       .budget_bytes = plan.budget_bytes,
                       .fixed_bytes = plan.total_bytes() - plan.kv_bytes - plan.request_bytes,
                       .kv_bytes = plan.kv_bytes,
                       .least_kv_bytes = plan.least_kv_bytes});
}

}  // namespace

void serve_child(ServeFlags flags, const std::function<void(ServeFlags)>& serve) {
  const auto status = std::make_shared<StatusChannel>(flags.status_fd);
  flags.status = status;
  flags.model.on_progress = [status](const char* stage, uint64_t done, uint64_t total) {
    status->send_progress(stage, done, total);
  };
  try {
    if (flags.plan_only) {
      report_plan(flags);
    } else {
      serve(std::move(flags));
    }
  } catch (const std::exception& error) {
    status->send(front::ChildError{.message = error.what()});
    throw;
  }
}

}  // namespace octavo

#include "engine/pipeline/stage_steps.h"

#include "base/widen.h"

namespace octavo {

StageSteps::StageSteps(TensorLinks& links, StageRunner& stage, const DecoderModel& model)
    : stage_(stage), model_(model), receiver_(links, links.rank() - 1, [this] { on_input_(); }) {}

void StageSteps::expect(const StepMessage& step) {
  receiver_.expect(widen(step.batch.rows()) * passed_row_bytes(model_.plan(), model_.dtype()));
}

void StageSteps::start(const StepMessage& step, bool is_dropped) {
  const RowBytes bytes = receiver_.take();
  if (is_dropped) return stage_.skip(step, "the step was dropped");
  const Embedded rows = received_rows(bytes, step.batch.rows(), model_.plan(), model_.dtype());
  stage_.start(step, &rows);
}

}  // namespace octavo

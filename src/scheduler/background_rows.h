// background_rows.h - how many rows of background requests a step may have beside other requests.
// No MLX. Engine thread only.
//
// The time of a step without background rows is measured every few steps. Beside it the limit grows
// by one row as long as steps take little longer than that, and halves if they do not.
#pragma once

#include "scheduler/step_costs.h"

namespace octavo {

// The rows of one step.
struct StepShares {
  int rows = 0;  // of all but background requests
  int background_rows = 0;
  bool prefills = false;  // some of `rows` are of prompts
};

class BackgroundRows {
 public:
  // Of a step that also has other rows.
  int next_limit();
  // The step took `seconds`.
  void observe(const StepShares& step, double seconds);

 private:
  StepCosts alone_;  // steps without background rows
  int limit_ = 1;
  int good_steps_ = 0;     // since the limit last changed
  int limited_steps_ = 0;  // calls of next_limit()
};

}  // namespace octavo

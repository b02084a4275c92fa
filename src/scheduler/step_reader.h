// step_reader.h - distributes a step's results over the sequences it ran. No MLX. Engine thread
// only.
#pragma once

#include <cstddef>

#include "scheduler/sequence.h"
#include "scheduler/step_runner.h"
#include "scheduler/update.h"

namespace octavo {

// One sequence's part of a step.
struct StepEntry {
  Sequence* sequence;
  int start;  // position of its first row
  int rows;
  int drawn;  // index of its first drawn token in StepResult::tokens, or -1 if it draws none
  int prompt_logprobs;
  int hidden_rows;
  int drafts = 0;  // the token drawn after each of them follows the first drawn token
};

// read() or skip() must be called once for every entry, in the order of the step.
class StepReader {
 public:
  // `result` must outlive the reader.
  explicit StepReader(const StepResult& result) : result_(result) {}

  // Passes the entry's results to its sequence and adds them to `update`, whose `finish` is set if
  // they end the sequence. Returns how many of the entry's drafts were right.
  int read(const StepEntry& entry, Update& update);
  void skip(const StepEntry& entry);

 private:
  void read_hidden_rows(const StepEntry& entry, Update& update);
  int read_draws(const StepEntry& entry, Update& update);

  const StepResult& result_;
  // Where the next entry's results begin.
  size_t prompt_logprobs_ = 0;
  size_t hidden_rows_ = 0;
};

}  // namespace octavo

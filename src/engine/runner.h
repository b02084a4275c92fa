// runner.h - turns a Batch into arrays and runs the model over it. Engine thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "engine/image_encoder.h"
#include "engine/pipeline/rows_link.h"
#include "engine/tensor/link_exchange.h"
#include "kernels/sampling.h"
#include "models/decoder_model.h"
#include "models/kv_store.h"
#include "scheduler/step_runner.h"

namespace octavo {

struct RunnerOptions {
  KernelPath path = KernelPath::kNative;
  int rows_at_once = 0;  // larger steps are queued in parts, as memory allows
  // For batches with adapters, which are then EngineAdapters. Must outlive the runner.
  AdapterMemory* adapters = nullptr;
  // For tests: return true to make the step fail on the device.
  std::function<bool(const Batch&)> fails = nullptr;
  // The next stage; null if the model's stage draws. Must outlive the runner.
  RowsSender* next_stage = nullptr;
  // The model's, if its outputs are divided over ranks: then all ranks must run the same steps, and
  // only rank 0 has results. Must outlive the runner.
  LinkExchange* ranks = nullptr;
  // For batches with images or with work for them. Must outlive the runner.
  ImageEncoder* images = nullptr;
};

// A model may be one stage: then steps are started with start_stage(), and only the last stage has
// results.
class Runner : public StepRunner {
 public:
  // Both must outlive the runner.
  Runner(const DecoderModel& model, KvStore& kv, RunnerOptions options);

  bool queues_at_once(const Batch& batch) const override {
    return batch.rows() <= options_.rows_at_once && batch.image_work.encodes == 0;
  }
  void start(const Batch& batch) override { start_stage(0, batch, nullptr); }
  // `step`: as RowsSender numbers it. `input`: rows of the previous stage; null: the tokens are
  // embedded.
  void start_stage(uint64_t step, const Batch& batch, const Embedded* input);
  StepResult finish() override;
  void drop() override;
  size_t steps_in_flight() const { return queued_.size(); }

  // Runs the step and returns the evaluated float32 logits [logit_rows, vocab]. No step may be in
  // flight. A batch may have no rows. With Batch::next_tokens, those of the multi-token prediction layer. `input`: as in
  // start_stage().
  mx::array logits(const Batch& batch, const Embedded* input = nullptr);

 private:
  // Results of a queued step.
  struct Queued {
    mx::array tokens;               // [sampled rows] int32
    std::vector<Drawn> drawn = {};  // by slice of rows
    std::vector<Logprobs> prompt_logprobs = {};
    std::vector<int> logprob_counts = {};         // by sampled row, -1: none
    std::vector<int> prompt_logprob_counts = {};  // by row
    std::optional<mx::array> hidden = {};         // [hidden rows, width] float32
    std::optional<mx::array> predicted = {};      // [sampled rows] int32
    std::optional<mx::array> sent = {};           // send_rows()
    std::vector<mx::array> parts = {};            // of logits that rank 0 has
    std::vector<mx::array> encoded = {};          // of ImageEncoder
    std::vector<mx::array> results = {};  // everything to evaluate, including the written pages
  };

  // A batch's layout and tables, as arrays.
  struct Arrays {
    BatchLayout layout;
    std::vector<mx::array> tables;
    std::optional<LoraStep> lora;  // unset: no row has an adapter
  };
  Arrays arrays_of(const Batch& batch) const;
  // Writes the adapters that the batch brings to their slots.
  void load_adapters(const Batch& batch);
  // Drops images, and queues a piece of an encoding. Returns what to evaluate.
  std::vector<mx::array> queue_images(const Batch& batch);

  // The rows after the stage's layers, before the final norm. Also writes their K and V.
  Embedded queue_layers(const Batch& batch, const Arrays& arrays, const Embedded* input);
  // What follows the images of a step that has rows.
  void queue_rows(uint64_t step, const Batch& batch, const Embedded* input, Queued& queued);
  Embedded embed(const Batch& batch, const LoraStep* lora) const;
  mx::array tokens_of(const Batch& batch) const;
  bool helps_rank_0() const {
    return options_.ranks != nullptr && options_.ranks->share().rank > 0;
  }
  // What a rank other than 0 adds to the layers: its parts of the logits. It gets the tokens, which
  // the next step may use.
  void queue_parts(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                   Queued& queued);
  // What the last stage adds to the layers.
  void queue_results(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                     Queued& queued);
  // The rows of the multi-token prediction layer, which also writes its K and V. `drawn`: the
  // step's tokens.
  mx::array queue_prediction(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                             const mx::array& drawn);
  void queue_predicted(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                       Queued& queued);
  mx::array logits_of(const Arrays& arrays, const mx::array& hidden,
                      std::span<const int32_t> rows) const;
  void queue_draws(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                   Queued& queued) const;
  void queue_prompt_logprobs(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                             Queued& queued) const;
  void queue_hidden(const Batch& batch, const mx::array& hidden, Queued& queued) const;
  std::vector<mx::array> results_of(const Queued& queued) const;

  const DecoderModel& model_;
  KvStore& kv_;
  RunnerOptions options_;
  std::deque<Queued> queued_;            // oldest first
  std::optional<mx::array> last_drawn_;  // of the newest step
};

}  // namespace octavo

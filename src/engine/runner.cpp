#include "engine/runner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/engine_adapter.h"
#include "kernels/runtime/fault.h"
#include "kernels/runtime/queueing.h"
#include "models/model_description.h"
#include "scheduler/drafter.h"

namespace octavo {
namespace {

mx::array int_array(std::span<const int32_t> values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

constexpr int kRopeAxes = 3;  // of Batch::rope_positions

// Tokens with 0 in the place of images; see DecoderModel::embed().
std::vector<TokenId> without_images(const Batch& batch) {
  std::vector<TokenId> tokens = batch.tokens;
  for (const ImageRows& image : batch.image_rows)
    std::fill_n(tokens.begin() + image.row, image.count, 0);
  return tokens;
}

// The logprobs of row `row` with `count` top tokens.
TokenLogprobs read_logprobs(const Logprobs& from, int row, int count) {
  const int columns = from.values.shape(1);
  const float* values = from.values.data<float>() + static_cast<ptrdiff_t>(row) * columns;
  const int32_t* ids = from.ids.data<int32_t>() + static_cast<ptrdiff_t>(row) * columns;
  TokenLogprobs result{
      .token = ids[0], .logprob = values[0], .rank = from.ranks.data<int32_t>()[row]};
  for (int i = 1; i <= count; ++i) result.top.emplace_back(ids[i], values[i]);
  return result;
}

}  // namespace

Runner::Runner(const DecoderModel& model, KvStore& kv, RunnerOptions options)
    : model_(model), kv_(kv), options_(std::move(options)) {}

void Runner::load_adapters(const Batch& batch) {
  for (const AdapterLoad& load : batch.adapter_loads)
    options_.adapters->write(load.slot, static_cast<const EngineAdapter&>(*load.adapter).weights());
}

Runner::Arrays Runner::arrays_of(const Batch& batch) const {
  Arrays arrays{.layout = {.positions = int_array(batch.positions),
                           .cu_seqlens_q = int_array(batch.cu_seqlens_q),
                           .context_lens = int_array(batch.context_lens)},
                .tables = {},
                .lora = {}};
  if (!batch.rope_positions.empty()) {
    OCTAVO_CHECK(batch.rope_positions.size() == kRopeAxes * batch.tokens.size());
    arrays.layout.rope_positions.emplace(batch.rope_positions.begin(),
                                         mx::Shape{kRopeAxes, batch.rows()}, mx::int32);
  }
  if (!batch.last_visible.empty()) arrays.layout.last_visible = int_array(batch.last_visible);
  for (const auto& table : batch.block_tables) {
    arrays.tables.emplace_back(table.pages.begin(), mx::Shape{batch.sequences(), table.columns},
                               mx::int32);
  }
  if (!batch.adapter_slots.empty()) arrays.lora.emplace(batch.adapter_slots, *options_.adapters);
  return arrays;
}

mx::array Runner::tokens_of(const Batch& batch) const {
  mx::array tokens = int_array(batch.image_rows.empty() ? batch.tokens : without_images(batch));
  if (!batch.waits_for_previous) return tokens;
  OCTAVO_CHECK(last_drawn_.has_value());
  return place_tokens(tokens, int_array(batch.token_sources), *last_drawn_);
}

std::vector<mx::array> Runner::queue_images(const Batch& batch) {
  if (batch.image_work.empty()) return {};
  OCTAVO_CHECK(options_.images != nullptr);
  std::vector<mx::array> results = options_.images->queue(batch.image_work);
  if (batch.rows() == 0 && !results.empty() && options_.fails && options_.fails(batch))
    results.back() = fail_when_run(results.back());
  return results;
}

Embedded Runner::embed(const Batch& batch, const LoraStep* lora) const {
  const mx::array tokens = tokens_of(batch);
  if (model_.plan().encoder) {
    const auto types = batch.token_types.empty() ? std::optional<mx::array>()
                                                 : std::optional(int_array(batch.token_types));
    return model_.embed_encoded(tokens, int_array(batch.positions), types, options_.path);
  }
  if (batch.image_rows.empty()) return model_.embed(tokens, options_.path, lora);
  OCTAVO_CHECK(options_.images != nullptr);
  return model_.embed(tokens, options_.path, lora, options_.images->rows_of(batch.image_rows));
}

Embedded Runner::queue_layers(const Batch& batch, const Arrays& arrays, const Embedded* input) {
  OCTAVO_CHECK((input == nullptr) == model_.stage().embeds());
  const LoraStep* lora = arrays.lora ? &*arrays.lora : nullptr;
  Embedded rows = input != nullptr ? *input : embed(batch, lora);
  rows.rows = model_.forward(rows, arrays.layout, arrays.tables, kv_, options_.path, lora);
  if (options_.fails && options_.fails(batch)) rows.rows = fail_when_run(rows.rows);
  return rows;
}

mx::array Runner::logits_of(const Arrays& arrays, const mx::array& hidden,
                            std::span<const int32_t> rows) const {
  // Only these rows are multiplied by the output matrix, the widest product of the step.
  return model_.logits(mx::take(hidden, int_array(rows), 0), options_.path,
                       arrays.lora ? std::optional(arrays.lora->head(rows)) : std::nullopt);
}

void Runner::queue_draws(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                         Queued& queued) const {
  std::vector<mx::array> tokens;
  for (size_t first = 0; first < batch.sampling.size(); first += kLogitRows) {
    const size_t count = std::min(size_t{kLogitRows}, batch.sampling.size() - first);
    const auto rows = std::span(batch.logit_rows).subspan(first, count);
    const auto sampling = std::span(batch.sampling).subspan(first, count);
    queued.drawn.push_back(
        sample(logits_of(arrays, hidden, rows), {sampling.begin(), sampling.end()}, last_drawn_));
    tokens.push_back(queued.drawn.back().tokens);
  }
  for (const auto& row : batch.sampling) queued.logprob_counts.push_back(row.logprobs);
  if (tokens.empty()) return;
  queued.tokens = tokens.size() == 1 ? tokens[0] : mx::concatenate(tokens, 0);
  if (options_.ranks != nullptr)
    queued.tokens = options_.ranks->from_first(queued.tokens, queued.tokens.shape(0));
}

mx::array Runner::queue_prediction(const Batch& batch, const Arrays& arrays,
                                   const mx::array& hidden, const mx::array& drawn) {
  mx::array next = int_array(batch.next_tokens);
  if (drawn.size() > 0) next = place_tokens(next, int_array(batch.next_sources), drawn);
  return model_.predict(hidden, next, arrays.layout, arrays.tables, kv_, options_.path);
}

void Runner::queue_predicted(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                             Queued& queued) {
  if (batch.next_tokens.empty()) return;
  const mx::array predicted = queue_prediction(batch, arrays, hidden, queued.tokens);
  std::vector<mx::array> tokens;
  for (size_t first = 0; first < batch.sampling.size(); first += kLogitRows) {
    const size_t count = std::min(size_t{kLogitRows}, batch.sampling.size() - first);
    const auto rows = std::span(batch.logit_rows).subspan(first, count);
    std::vector<RowSampling> sampling;
    for (const RowSampling& own : std::span(batch.sampling).subspan(first, count))
      sampling.push_back(guess_sampling(own, 1));
    const mx::array logits =
        model_.predicted_logits(mx::take(predicted, int_array(rows), 0), options_.path);
    tokens.push_back(sample(logits, std::move(sampling)).tokens);
  }
  if (tokens.empty()) return;
  queued.predicted = tokens.size() == 1 ? tokens[0] : mx::concatenate(tokens, 0);
}

void Runner::queue_prompt_logprobs(const Batch& batch, const Arrays& arrays,
                                   const mx::array& hidden, Queued& queued) const {
  for (size_t first = 0; first < batch.prompt_logprobs.size(); first += kLogitRows) {
    std::vector<int32_t> rows;
    std::vector<TokenId> targets;
    int most = 0;
    const size_t end = std::min(first + kLogitRows, batch.prompt_logprobs.size());
    for (size_t i = first; i < end; ++i) {
      const PromptLogprobRow& wanted = batch.prompt_logprobs[i];
      rows.push_back(wanted.row);
      targets.push_back(wanted.target);
      queued.prompt_logprob_counts.push_back(wanted.count);
      most = std::max(most, wanted.count);
    }
    queued.prompt_logprobs.push_back(logprobs_of(logits_of(arrays, hidden, rows), targets, most));
  }
}

void Runner::queue_hidden(const Batch& batch, const mx::array& hidden, Queued& queued) const {
  if (batch.hidden_rows.empty()) return;
  queued.hidden =
      model_.final_rows(mx::take(hidden, int_array(batch.hidden_rows), 0), options_.path);
}

void Runner::queue_parts(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                         Queued& queued) {
  // Calls `part` with the rows of each slice.
  const auto slices = [&](std::span<const int32_t> rows, const auto& part) {
    for (size_t first = 0; first < rows.size(); first += kLogitRows)
      queued.parts.push_back(
          part(rows.subspan(first, std::min(size_t{kLogitRows}, rows.size() - first))));
  };
  const auto logits = [&](std::span<const int32_t> rows) {
    return logits_of(arrays, hidden, rows);
  };
  slices(batch.logit_rows, logits);
  if (const auto drawn = static_cast<int>(batch.logit_rows.size()); drawn > 0)
    queued.tokens = options_.ranks->from_first(mx::zeros({drawn}, mx::int32), drawn);
  if (!batch.next_tokens.empty()) {
    const mx::array rows = queue_prediction(batch, arrays, hidden, queued.tokens);
    slices(batch.logit_rows, [&](std::span<const int32_t> wanted) {
      return model_.predicted_logits(mx::take(rows, int_array(wanted), 0), options_.path);
    });
  }
  std::vector<int32_t> prompt_rows;
  for (const PromptLogprobRow& wanted : batch.prompt_logprobs) prompt_rows.push_back(wanted.row);
  slices(prompt_rows, logits);
  // Rank 0 reads these rows, so it evaluates all layers: so must this rank.
  if (!batch.hidden_rows.empty()) queued.parts.push_back(hidden);
}

// Everything to evaluate, including the pages, since a step may draw nothing.
std::vector<mx::array> Runner::results_of(const Queued& queued) const {
  std::vector<mx::array> results = kv_.buffers();
  const auto add = [&](const Logprobs& from) {
    results.insert(results.end(), {from.values, from.ids, from.ranks});
  };
  results.push_back(queued.tokens);
  for (const auto& drawn : queued.drawn) {
    if (drawn.logprobs) add(*drawn.logprobs);
    if (drawn.hashes) results.push_back(*drawn.hashes);
  }
  for (const auto& slice : queued.prompt_logprobs) add(slice);
  if (queued.hidden) results.push_back(*queued.hidden);
  if (queued.predicted) results.push_back(*queued.predicted);
  if (queued.sent) results.push_back(*queued.sent);
  results.insert(results.end(), queued.parts.begin(), queued.parts.end());
  results.insert(results.end(), queued.encoded.begin(), queued.encoded.end());
  return results;
}

void Runner::queue_results(const Batch& batch, const Arrays& arrays, const mx::array& hidden,
                           Queued& queued) {
  queue_draws(batch, arrays, hidden, queued);
  queue_predicted(batch, arrays, hidden, queued);
  queue_prompt_logprobs(batch, arrays, hidden, queued);
  queue_hidden(batch, hidden, queued);
}

void Runner::queue_rows(uint64_t step, const Batch& batch, const Embedded* input, Queued& queued) {
  load_adapters(batch);
  if (options_.ranks != nullptr) options_.ranks->begin_step();
  const Arrays arrays = arrays_of(batch);
  const Embedded rows = queue_layers(batch, arrays, input);
  if (helps_rank_0()) {
    queue_parts(batch, arrays, rows.rows, queued);
  } else if (model_.draws()) {
    queue_results(batch, arrays, rows.rows, queued);
  } else {
    queued.sent = send_rows(rows, step, *options_.next_stage);
  }
}

void Runner::start_stage(uint64_t step, const Batch& batch, const Embedded* input) {
  OCTAVO_CHECK(batch.sampling.size() == batch.logit_rows.size());
  Queued queued{.tokens = mx::zeros({0}, mx::int32)};
  queued.encoded = queue_images(batch);
  if (batch.rows() > 0) queue_rows(step, batch, input, queued);
  queued.results = results_of(queued);
  const QueueAtOnce at_once(queues_at_once(batch));
  mx::async_eval(queued.results);
  last_drawn_ = queued.tokens;
  queued_.push_back(std::move(queued));
}

StepResult Runner::finish() {
  OCTAVO_CHECK(!queued_.empty());
  Queued queued = std::move(queued_.front());
  queued_.pop_front();
  for (mx::array& result : queued.results) result.wait();
  check_kernels();
  if (options_.ranks != nullptr) options_.ranks->check();
  StepResult result;
  if (helps_rank_0()) return result;
  const mx::array& tokens = queued.tokens;
  result.tokens.assign(tokens.data<int32_t>(), tokens.data<int32_t>() + tokens.size());
  size_t row = 0;
  for (const auto& drawn : queued.drawn) {
    for (int i = 0; i < drawn.tokens.shape(0); ++i, ++row) {
      const int count = queued.logprob_counts[row];
      if (drawn.logprobs && count >= 0) {
        result.logprobs.resize(result.tokens.size());
        result.logprobs[row] = read_logprobs(*drawn.logprobs, i, count);
      }
      if (drawn.hashes) {
        result.hashes.resize(result.tokens.size());
        result.hashes[row] = drawn.hashes->data<uint64_t>()[i];
      }
    }
  }
  row = 0;
  for (const auto& slice : queued.prompt_logprobs) {
    for (int i = 0; i < slice.ranks.shape(0); ++i, ++row)
      result.prompt_logprobs.push_back(read_logprobs(slice, i, queued.prompt_logprob_counts[row]));
  }
  if (queued.hidden) {
    const mx::array& hidden = *queued.hidden;
    result.hidden = {.width = hidden.shape(1),
                     .values = {hidden.data<float>(), hidden.data<float>() + hidden.size()}};
  }
  if (queued.predicted) {
    const mx::array& predicted = *queued.predicted;
    result.predicted.assign(predicted.data<int32_t>(),
                            predicted.data<int32_t>() + predicted.size());
  }
  return result;
}

void Runner::drop() {
  wait_for_kernels();
  queued_.clear();
  last_drawn_.reset();
  if (options_.images != nullptr) options_.images->clear();
  kv_.rebind_to_memory();
}

mx::array Runner::logits(const Batch& batch, const Embedded* input) {
  OCTAVO_CHECK(queued_.empty() && model_.draws());
  const std::vector<mx::array> encoded = queue_images(batch);
  mx::array result = mx::zeros({0, model_.plan().vocab}, mx::float32);
  if (batch.rows() == 0) {
    mx::eval(encoded);
    return result;
  }
  load_adapters(batch);
  const Arrays arrays = arrays_of(batch);
  const mx::array hidden = queue_layers(batch, arrays, input).rows;
  if (!batch.next_tokens.empty()) {
    const mx::array predicted = queue_prediction(batch, arrays, hidden, mx::zeros({0}, mx::int32));
    result =
        model_.predicted_logits(mx::take(predicted, int_array(batch.logit_rows), 0), options_.path);
  } else if (!batch.logit_rows.empty()) {
    result = logits_of(arrays, hidden, batch.logit_rows);
  }
  std::vector<mx::array> results = kv_.buffers();
  results.push_back(result);
  results.insert(results.end(), encoded.begin(), encoded.end());
  mx::eval(results);
  return result;
}

}  // namespace octavo

#include "kernels/logprobs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/logprobs.h"
#include "kernels/logit_rows.h"
#include "kernels/metal/logprobs.h"
#include "kernels/runtime/kernel_path.h"

namespace octavo {
namespace {

struct LogprobsOut {
  float* values = nullptr;
  int32_t* ids = nullptr;
  int32_t* ranks = nullptr;
  int64_t rows = 0;
  size_t columns = 0;

  // outputs: the arrays of a Logprobs
  static LogprobsOut allocate_in(std::vector<mx::array>& outputs) {
    for (mx::array& output : outputs) allocate(output);
    return {.values = outputs[0].data<float>(),
            .ids = outputs[1].data<int32_t>(),
            .ranks = outputs[2].data<int32_t>(),
            .rows = outputs[0].shape(0),
            .columns = static_cast<size_t>(outputs[0].shape(1))};
  }

  cpu::LogprobsRow row(int64_t index) const {
    const int64_t first = index * static_cast<int64_t>(columns);
    return {
        .values = {values + first, columns}, .ids = {ids + first, columns}, .rank = ranks + index};
  }
};

// The arrays of a Logprobs.
Logprobs make_logprobs(int rows, int count, std::shared_ptr<mx::Primitive> primitive,
                       std::vector<mx::array> inputs) {
  const mx::Shape table = {rows, 1 + count};
  const auto outputs =
      mx::array::make_arrays({table, table, {rows}}, {mx::float32, mx::int32, mx::int32},
                             std::move(primitive), std::move(inputs));
  return {.values = outputs[0], .ids = outputs[1], .ranks = outputs[2]};
}

// inputs: logits, tokens. outputs: those of a Logprobs.
class LogprobsOnCpu : public KernelPrimitive {
 public:
  LogprobsOnCpu(mx::Stream stream, std::vector<int> counts)
      : KernelPrimitive(stream),
        counts_(std::make_shared<const std::vector<int>>(std::move(counts))) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("logprobs_of.cpu");
    require_contiguous(inputs[1]);
    run_on_cpu(*this,
               [counts = counts_, logits = LogitRows::of(inputs[0]),
                tokens = inputs[1].data<int32_t>(), out = LogprobsOut::allocate_in(outputs)] {
                 logits.for_each([&](int64_t row) {
                   const int count = (*counts)[static_cast<size_t>(row)];
                   // After a failed launch, tokens can be any numbers.
                   if (count < 0 || tokens[row] < 0 || tokens[row] >= logits.vocab)
                     return cpu::write_no_logprobs(out.row(row));
                   cpu::write_logprobs(logits.row(row), tokens[row], count, out.row(row));
                 });
               });
  }
  // Always on a CPU stream, where a Metal simulator must leave it.
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder&) override {
    run_cpu(inputs, outputs);
  }
  const char* name() const override { return "LogprobsOnCpu"; }

 private:
  std::shared_ptr<const std::vector<int>> counts_;
};

using TopRows = std::shared_ptr<const std::vector<metal::RowTop>>;

// inputs: logits, tokens. outputs: those of metal::LogprobsCall, in its order.
class LogprobParts : public KernelPrimitive {
 public:
  LogprobParts(mx::Stream stream, TopRows rows) : KernelPrimitive(stream), rows_(std::move(rows)) {}

  // Only Metal divides the work.
  void run_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    OCTAVO_CHECK(false);
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    for (mx::array& output : outputs) allocate(output);
    metal::find_logprobs({.logits = inputs[0],
                          .tokens = inputs[1],
                          .rows = *rows_,
                          .ends = outputs[0],
                          .sums = outputs[1],
                          .above = outputs[2],
                          .top_ids = outputs[3],
                          .top_logits = outputs[4]},
                         encoder);
  }
  const char* name() const override { return "LogprobParts"; }

 private:
  TopRows rows_;
};

// Computes the logarithms, for which Metal has no double precision. inputs: the outputs of
// LogprobParts, then tokens. outputs: those of a Logprobs.
class FinishLogprobs : public KernelPrimitive {
 public:
  FinishLogprobs(mx::Stream stream, TopRows rows)
      : KernelPrimitive(stream), rows_(std::move(rows)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("finish_logprobs.cpu");
    run_on_cpu(*this,
               [rows = rows_, blocks = static_cast<size_t>(inputs[1].shape(1)),
                most = static_cast<size_t>(inputs[3].shape(1)), ends = inputs[0].data<float>(),
                sums = inputs[1].data<float>(), above = inputs[2].data<int32_t>(),
                ids = inputs[3].data<int32_t>(), logits = inputs[4].data<float>(),
                tokens = inputs[5].data<int32_t>(), out = LogprobsOut::allocate_in(outputs)] {
                 for (int64_t row = 0; row < out.rows; ++row) cpu::write_no_logprobs(out.row(row));
                 for (size_t i = 0; i < rows->size(); ++i) {
                   const int row = (*rows)[i].row;
                   const auto count = static_cast<size_t>((*rows)[i].count);
                   cpu::finish_logprobs({.token = tokens[row],
                                         .logit = ends[2 * i],
                                         .largest = ends[2 * i + 1],
                                         .sums = {sums + i * blocks, blocks},
                                         .above = {above + i * blocks, blocks},
                                         .ids = {ids + i * most, count},
                                         .logits = {logits + i * most, count}},
                                        out.row(row));
                 }
               });
  }
  // Always on a CPU stream, as above.
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder&) override {
    run_cpu(inputs, outputs);
  }
  const char* name() const override { return "FinishLogprobs"; }

 private:
  TopRows rows_;
};

Logprobs logprobs_on_metal(const mx::array& logits, const mx::array& tokens,
                           const std::vector<int>& counts, int most) {
  std::vector<metal::RowTop> requested;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] >= 0) requested.push_back({.row = static_cast<int>(i), .count = counts[i]});
  const auto rows = std::make_shared<const std::vector<metal::RowTop>>(std::move(requested));
  const auto count = static_cast<int>(rows->size());
  const mx::Shape by_block = {count, metal::blocks_of(logits.shape(1))};
  const mx::Shape top = {count, std::max(most, 1)};  // a buffer must not be empty
  auto parts = mx::array::make_arrays({{count, 2}, by_block, by_block, top, top},
                                      {mx::float32, mx::float32, mx::int32, mx::int32, mx::float32},
                                      std::make_shared<LogprobParts>(kernel_stream(), rows),
                                      {logits, tokens});
  parts.push_back(tokens);
  return make_logprobs(logits.shape(0), most, std::make_shared<FinishLogprobs>(cpu_stream(), rows),
                       std::move(parts));
}

}  // namespace

Logprobs logprobs_of(const mx::array& logits, const mx::array& tokens, std::vector<int> counts) {
  OCTAVO_CHECK(logits.ndim() == 2 && logits.dtype() == mx::float32 && logits.shape(1) > 0);
  OCTAVO_CHECK(tokens.ndim() == 1 && tokens.dtype() == mx::int32);
  OCTAVO_CHECK(tokens.shape(0) == logits.shape(0));
  OCTAVO_CHECK(static_cast<int>(counts.size()) == logits.shape(0) && !counts.empty());
  const int most = std::max(*std::ranges::max_element(counts), 0);
  OCTAVO_CHECK(most <= logits.shape(1));
  // Both have the same bits, so that other rows may decide.
  if (uses_metal() && logits.shape(1) <= metal::kMostLogits && most <= metal::kMostTopTokens)
    return logprobs_on_metal(logits, tokens, counts, most);
  return make_logprobs(logits.shape(0), most,
                       std::make_shared<LogprobsOnCpu>(cpu_stream(), std::move(counts)),
                       {logits, tokens});
}

Logprobs logprobs_of(const mx::array& logits, std::span<const TokenId> tokens, int count) {
  for (TokenId token : tokens) OCTAVO_CHECK(0 <= token && token < logits.shape(1));
  return logprobs_of(logits,
                     mx::array(tokens.begin(), {static_cast<int>(tokens.size())}, mx::int32),
                     std::vector<int>(tokens.size(), count));
}

}  // namespace octavo

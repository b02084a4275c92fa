#include "kernels/sampling.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/xxh64.h"
#include "kernels/cpu/sampling.h"
#include "kernels/logit_rows.h"
#include "kernels/metal/sampling.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

struct SampleJob {
  std::shared_ptr<const std::vector<RowSampling>> rows;
  LogitRows logits;
  std::span<const TokenId> previous;
  int32_t* tokens = nullptr;

  void run() const {
    // Before the rows are split over threads, because pool threads must not wait.
    for (const RowSampling& row : *rows)
      if (row.mask) row.mask->wait();
    logits.for_each([&](int64_t row) {
      tokens[row] = cpu::sample_row(logits.row(row), (*rows)[static_cast<size_t>(row)], previous);
    });
  }
};

// Waits for masks that the device reads. outputs: [M, words] uint32, in the rows' order.
class MaskWords : public KernelPrimitive {
 public:
  MaskWords(mx::Stream stream, std::vector<std::shared_ptr<const TokenMask>> masks)
      : KernelPrimitive(stream), masks_(std::move(masks)) {}

  void run_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    count_launch("mask_words.cpu");
    allocate(outputs[0]);
    run_on_cpu(*this, [masks = masks_, out = outputs[0].data<uint32_t>(),
                       words = static_cast<size_t>(outputs[0].shape(1))]() mutable {
      for (const auto& mask : masks) {
        write_mask(mask->wait(), {out, words});
        out += words;
      }
    });
  }
  // Always on a CPU stream, where a Metal simulator must leave it.
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder&) override {
    run_cpu(inputs, outputs);
  }
  const char* name() const override { return "MaskWords"; }

  // No words: all tokens may be drawn. Tokens past the end of a mask may not.
  static void write_mask(std::span<const uint32_t> mask, std::span<uint32_t> out) {
    std::ranges::fill(out, mask.empty() ? ~uint32_t{0} : 0);
    std::copy_n(mask.begin(), std::min(mask.size(), out.size()), out.begin());
  }

 private:
  std::vector<std::shared_ptr<const TokenMask>> masks_;
};

// inputs: logits, then the previous step's tokens if present; on Metal, the masks if a row has one.
// outputs: tokens.
class Sample : public KernelPrimitive {
 public:
  Sample(mx::Stream stream, std::shared_ptr<const std::vector<RowSampling>> rows, bool previous)
      : KernelPrimitive(stream), rows_(std::move(rows)), previous_(previous) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("sample.cpu");
    SampleJob job{.rows = rows_, .logits = LogitRows::of(inputs[0]), .previous = {}};
    if (previous_) {
      require_contiguous(inputs[1]);
      job.previous = {inputs[1].data<int32_t>(), inputs[1].size()};
    }
    allocate(outputs[0]);
    job.tokens = outputs[0].data<int32_t>();
    run_on_cpu(*this, [job = std::move(job)] { job.run(); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    // On a CPU stream, where a Metal simulator must leave it.
    if (inputs[0].shape(1) > metal::kMostLogits) return run_cpu(inputs, outputs);
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    metal::SampleCall call{.logits = inputs[0], .rows = *rows_, .tokens = outputs[0]};
    if (previous_) call.previous = inputs[1];
    if (inputs.size() > (previous_ ? 2 : 1)) call.masks = inputs.back();
    metal::sample(call, encoder);
  }
  const char* name() const override { return "Sample"; }

 private:
  std::shared_ptr<const std::vector<RowSampling>> rows_;
  bool previous_;
};

// inputs: logits. outputs: hashes, 0 for rows that request none.
class HashLogits : public KernelPrimitive {
 public:
  HashLogits(mx::Stream stream, std::shared_ptr<const std::vector<RowSampling>> rows)
      : KernelPrimitive(stream), rows_(std::move(rows)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("hash_logits.cpu");
    allocate(outputs[0]);
    run_on_cpu(*this, [rows = rows_, logits = LogitRows::of(inputs[0]),
                       out = outputs[0].data<uint64_t>()] {
      logits.for_each([&](int64_t row) {
        const bool requested = (*rows)[static_cast<size_t>(row)].hash_logits;
        out[row] = requested ? xxh64(std::as_bytes(logits.row(row))) : 0;
      });
    });
  }
  // Always on a CPU stream, as above.
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder&) override {
    run_cpu(inputs, outputs);
  }
  const char* name() const override { return "HashLogits"; }

 private:
  std::shared_ptr<const std::vector<RowSampling>> rows_;
};

// inputs: tokens, sources, previous.
class PlaceTokens : public KernelPrimitive {
 public:
  using KernelPrimitive::KernelPrimitive;

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("place_tokens.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    run_on_cpu(*this, [count = inputs[0].size(), tokens = inputs[0].data<int32_t>(),
                       sources = inputs[1].data<int32_t>(), previous = inputs[2].data<int32_t>(),
                       out = outputs[0].data<int32_t>()] {
      for (size_t i = 0; i < count; ++i) out[i] = sources[i] < 0 ? tokens[i] : previous[sources[i]];
    });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    metal::place_tokens(
        {.tokens = inputs[0], .sources = inputs[1], .previous = inputs[2], .out = outputs[0]},
        encoder);
  }
  const char* name() const override { return "PlaceTokens"; }
};

void check_row(const RowSampling& row, int vocab, int previous) {
  OCTAVO_CHECK(row.logprobs <= vocab);
  if (row.rules == nullptr) return;
  const RowHistory& history = row.history;
  OCTAVO_CHECK(0 <= history.prompt && history.prompt <= history.known);
  OCTAVO_CHECK(history.known == 0 || history.log != nullptr);
  OCTAVO_CHECK(history.pending < previous);
  OCTAVO_CHECK(history.assumed_count == 0 || (history.pending < 0 && history.assumed != nullptr));
}

// The masks of the rows that have one. If they are known by now, no stream has to wait.
std::optional<mx::array> device_masks(const std::vector<RowSampling>& rows, int vocab) {
  std::vector<std::shared_ptr<const TokenMask>> masks;
  for (const RowSampling& row : rows)
    if (row.mask) masks.push_back(row.mask);
  if (masks.empty()) return std::nullopt;
  const mx::Shape shape = {static_cast<int>(masks.size()), (vocab + 31) / 32};
  if (!std::ranges::all_of(masks, [](const auto& mask) { return mask->is_set(); }))
    return mx::array(shape, mx::uint32, std::make_shared<MaskWords>(cpu_stream(), masks), {});
  const auto words = static_cast<size_t>(shape[1]);
  std::vector<uint32_t> all(masks.size() * words);
  for (size_t i = 0; i < masks.size(); ++i)
    MaskWords::write_mask(masks[i]->wait(), std::span(all).subspan(i * words, words));
  return mx::array(all.begin(), shape, mx::uint32);
}

mx::array draw_tokens(const mx::array& logits,
                      const std::shared_ptr<const std::vector<RowSampling>>& rows,
                      const std::optional<mx::array>& previous) {
  const bool on_metal = uses_metal() && logits.shape(1) <= metal::kMostLogits;
  std::vector<mx::array> inputs = {logits};
  if (previous) inputs.push_back(*previous);
  if (on_metal) {
    if (const auto masks = device_masks(*rows, logits.shape(1))) inputs.push_back(*masks);
  }
  return mx::array({logits.shape(0)}, mx::int32,
                   std::make_shared<Sample>(on_metal ? kernel_stream() : cpu_stream(), rows,
                                            previous.has_value()),
                   std::move(inputs));
}

}  // namespace

Drawn sample(const mx::array& logits, std::vector<RowSampling> rows,
             const std::optional<mx::array>& previous) {
  OCTAVO_CHECK(logits.ndim() == 2 && logits.dtype() == mx::float32 && logits.shape(1) > 0);
  OCTAVO_CHECK(logits.shape(0) == static_cast<int>(rows.size()));
  OCTAVO_CHECK(!previous || (previous->ndim() == 1 && previous->dtype() == mx::int32));
  std::vector<int> counts;
  for (const RowSampling& row : rows) {
    check_row(row, logits.shape(1), previous ? previous->shape(0) : 0);
    counts.push_back(row.logprobs);
  }
  const auto shared = std::make_shared<const std::vector<RowSampling>>(std::move(rows));
  Drawn drawn{.tokens = draw_tokens(logits, shared, previous)};
  if (std::ranges::any_of(counts, [](int count) { return count >= 0; }))
    drawn.logprobs = logprobs_of(logits, drawn.tokens, std::move(counts));
  if (std::ranges::any_of(*shared, &RowSampling::hash_logits))
    drawn.hashes = mx::array({logits.shape(0)}, mx::uint64,
                             std::make_shared<HashLogits>(cpu_stream(), shared), {logits});
  return drawn;
}

mx::array place_tokens(const mx::array& tokens, const mx::array& sources,
                       const mx::array& previous) {
  for (const auto* array : {&tokens, &sources, &previous})
    OCTAVO_CHECK(array->ndim() == 1 && array->dtype() == mx::int32);
  OCTAVO_CHECK(tokens.size() == sources.size());
  return mx::array(tokens.shape(), mx::int32, std::make_shared<PlaceTokens>(kernel_stream()),
                   {tokens, sources, previous});
}

}  // namespace octavo

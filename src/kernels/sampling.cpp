#include "kernels/sampling.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/xxh64.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/logprobs.h"
#include "kernels/cpu/sampling.h"
#include "kernels/metal/sampling.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// One step's rows and the destination of their results.
struct Logits {
  const float* first = nullptr;
  int64_t rows = 0;
  int64_t vocab = 0;

  std::span<const float> row(int64_t index) const {
    return {first + index * vocab, static_cast<size_t>(vocab)};
  }
};

struct LogprobsOut {
  float* values = nullptr;  // null: not requested
  int32_t* ids = nullptr;
  int32_t* ranks = nullptr;
  size_t columns = 0;

  cpu::LogprobsRow row(int64_t index) const {
    const int64_t first = index * static_cast<int64_t>(columns);
    return {
        .values = {values + first, columns}, .ids = {ids + first, columns}, .rank = ranks + index};
  }
};

Logits logits_of(const mx::array& logits) {
  require_contiguous(logits);
  return {.first = logits.data<float>(), .rows = logits.shape(0), .vocab = logits.shape(1)};
}

// The arrays of a Logprobs: output `first` of a primitive and the two after it.
LogprobsOut allocate_logprobs(std::vector<mx::array>& outputs, size_t first) {
  for (size_t i = first; i < first + 3; ++i) allocate(outputs[i]);
  return {.values = outputs[first].data<float>(),
          .ids = outputs[first + 1].data<int32_t>(),
          .ranks = outputs[first + 2].data<int32_t>(),
          .columns = static_cast<size_t>(outputs[first].shape(1))};
}

// The shapes and types of a primitive's outputs.
struct Outputs {
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;

  void add(mx::Shape shape, mx::Dtype dtype) {
    shapes.push_back(std::move(shape));
    dtypes.push_back(dtype);
  }
  void add_logprobs(int rows, int count) {
    add({rows, 1 + count}, mx::float32);
    add({rows, 1 + count}, mx::int32);
    add({rows}, mx::int32);
  }
};

template <typename Body>
void for_each_row(int64_t rows, const Body& body) {
  compute_pool().parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
    cpu::prepare_thread();
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

// The CPU handles logprobs and hashes: they need logarithms in double precision, or read a row in
// ways that a GPU does not speed up, and CPU and GPU share their memory. Other rows are drawn on the
// device. The choice depends on the row's own request only, never on its neighbours.
bool is_drawn_on_device(const RowSampling& row) { return row.logprobs < 0 && !row.hash_logits; }

// Which rows of a batch a primitive draws.
struct RowShare {
  bool on_device = true;  // the rows that the device supports
  bool on_cpu = true;     // the others

  bool has(const RowSampling& row) const { return is_drawn_on_device(row) ? on_device : on_cpu; }
};

struct SampleJob {
  std::shared_ptr<const std::vector<RowSampling>> rows;
  Logits logits;
  std::span<const TokenId> previous;
  int32_t* tokens = nullptr;
  LogprobsOut logprobs;
  uint64_t* hashes = nullptr;  // null: not requested
  RowShare share;

  // Done before the rows are split over threads, because pool threads must not wait.
  void wait_for_masks() const {
    for (const RowSampling& row : *rows)
      if (row.mask && share.has(row)) row.mask->wait();
  }

  void run(int64_t row) const {
    const RowSampling& sampling = (*rows)[static_cast<size_t>(row)];
    if (!share.has(sampling)) return leave_out(row);
    const std::span<const float> of_row = logits.row(row);
    tokens[row] = cpu::sample_row(of_row, sampling, previous);
    if (logprobs.values != nullptr) {
      if (sampling.logprobs >= 0) {
        cpu::write_logprobs(of_row, tokens[row], sampling.logprobs, logprobs.row(row));
      } else {
        cpu::write_no_logprobs(logprobs.row(row));
      }
    }
    if (hashes != nullptr) hashes[row] = sampling.hash_logits ? xxh64(std::as_bytes(of_row)) : 0;
  }

 private:
  void leave_out(int64_t row) const {
    tokens[row] = 0;
    if (logprobs.values != nullptr) cpu::write_no_logprobs(logprobs.row(row));
    if (hashes != nullptr) hashes[row] = 0;
  }
};

mx::Stream cpu_stream() { return mx::default_stream(mx::Device::cpu); }

// Waits for the masks of rows that the device draws. outputs: [M, words] uint32, in the rows' order.
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
// outputs: tokens, then logprobs and hashes if a row requests them.
class Sample : public KernelPrimitive {
 public:
  Sample(mx::Stream stream, std::shared_ptr<const std::vector<RowSampling>> rows, RowShare share,
         bool previous, bool logprobs, bool hashes)
      : KernelPrimitive(stream),
        rows_(std::move(rows)),
        share_(share),
        previous_(previous),
        logprobs_(logprobs),
        hashes_(hashes) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("sample.cpu");
    SampleJob job{.rows = rows_,
                  .logits = logits_of(inputs[0]),
                  .previous = {},
                  .logprobs = {},
                  .share = share_};
    if (previous_) {
      require_contiguous(inputs[1]);
      job.previous = {inputs[1].data<int32_t>(), inputs[1].size()};
    }
    allocate(outputs[0]);
    job.tokens = outputs[0].data<int32_t>();
    if (logprobs_) job.logprobs = allocate_logprobs(outputs, 1);
    if (hashes_) {
      allocate(outputs.back());
      job.hashes = outputs.back().data<uint64_t>();
    }
    run_on_cpu(*this, [job = std::move(job)] {
      job.wait_for_masks();
      for_each_row(job.logits.rows, [&](int64_t row) { job.run(row); });
    });
  }
  // sample() puts CPU-only work on a CPU stream, where a Metal simulator must leave it.
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    if (share_.on_cpu) return run_cpu(inputs, outputs);
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    metal::SampleCall call{.logits = inputs[0], .rows = *rows_, .drawn = {}, .tokens = outputs[0]};
    for (const RowSampling& row : *rows_) call.drawn.push_back(share_.has(row));
    if (previous_) call.previous = inputs[1];
    if (inputs.size() > (previous_ ? 2 : 1)) call.masks = inputs.back();
    metal::sample(call, encoder);
  }
  const char* name() const override { return "Sample"; }

 private:
  std::shared_ptr<const std::vector<RowSampling>> rows_;
  RowShare share_;
  bool previous_;
  bool logprobs_;
  bool hashes_;
};

// inputs: logits. outputs: those of a Logprobs.
class LogprobsOf : public KernelPrimitive {
 public:
  LogprobsOf(mx::Stream stream, std::span<const TokenId> tokens, int count)
      : KernelPrimitive(stream),
        tokens_(std::make_shared<const std::vector<TokenId>>(tokens.begin(), tokens.end())),
        count_(count) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("logprobs_of.cpu");
    run_on_cpu(*this, [tokens = tokens_, count = count_, logits = logits_of(inputs[0]),
                       out = allocate_logprobs(outputs, 0)] {
      for_each_row(logits.rows, [&](int64_t row) {
        cpu::write_logprobs(logits.row(row), (*tokens)[static_cast<size_t>(row)], count,
                            out.row(row));
      });
    });
  }
  // Always on a CPU stream, as above.
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder&) override {
    run_cpu(inputs, outputs);
  }
  const char* name() const override { return "LogprobsOf"; }

 private:
  std::shared_ptr<const std::vector<TokenId>> tokens_;
  int count_;
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

Logprobs logprobs_at(const std::vector<mx::array>& outputs, size_t first) {
  return {.values = outputs[first], .ids = outputs[first + 1], .ranks = outputs[first + 2]};
}

// A batch to draw from, shared by primitives.
struct Draws {
  const mx::array& logits;
  std::shared_ptr<const std::vector<RowSampling>> rows;
  const std::optional<mx::array>& previous;

  // logprobs: the largest request of a row; -1: none.
  Drawn make(RowShare share, mx::Stream stream, int logprobs, bool hashed) const {
    const bool with_logprobs = logprobs >= 0;
    Outputs made;
    made.add({logits.shape(0)}, mx::int32);
    if (with_logprobs) made.add_logprobs(logits.shape(0), logprobs);
    if (hashed) made.add({logits.shape(0)}, mx::uint64);
    std::vector<mx::array> inputs = {logits};
    if (previous) inputs.push_back(*previous);
    if (!share.on_cpu) {
      if (const auto masks = device_masks()) inputs.push_back(*masks);
    }
    const auto outputs = mx::array::make_arrays(
        std::move(made.shapes), made.dtypes,
        std::make_shared<Sample>(stream, rows, share, previous.has_value(), with_logprobs, hashed),
        inputs);
    return {.tokens = outputs[0],
            .logprobs = with_logprobs ? std::optional(logprobs_at(outputs, 1)) : std::nullopt,
            .hashes = hashed ? std::optional(outputs.back()) : std::nullopt};
  }

  // The masks of the rows that the device draws. If they are known by now, no stream has to wait.
  std::optional<mx::array> device_masks() const {
    std::vector<std::shared_ptr<const TokenMask>> masks;
    for (const RowSampling& row : *rows)
      if (row.mask && is_drawn_on_device(row)) masks.push_back(row.mask);
    if (masks.empty()) return std::nullopt;
    const mx::Shape shape = {static_cast<int>(masks.size()), (logits.shape(1) + 31) / 32};
    if (!std::ranges::all_of(masks, [](const auto& mask) { return mask->is_set(); }))
      return mx::array(shape, mx::uint32, std::make_shared<MaskWords>(cpu_stream(), masks), {});
    const auto words = static_cast<size_t>(shape[1]);
    std::vector<uint32_t> all(masks.size() * words);
    for (size_t i = 0; i < masks.size(); ++i)
      MaskWords::write_mask(masks[i]->wait(), std::span(all).subspan(i * words, words));
    return mx::array(all.begin(), shape, mx::uint32);
  }

  // [R] int32: the row itself if the CPU draws it, else -1.
  mx::array cpu_rows() const {
    std::vector<int> sources;
    for (size_t i = 0; i < rows->size(); ++i)
      sources.push_back(is_drawn_on_device((*rows)[i]) ? -1 : static_cast<int>(i));
    return mx::array(sources.begin(), {static_cast<int>(sources.size())}, mx::int32);
  }
};

}  // namespace

Drawn sample(const mx::array& logits, std::vector<RowSampling> rows,
             const std::optional<mx::array>& previous) {
  OCTAVO_CHECK(logits.ndim() == 2 && logits.dtype() == mx::float32 && logits.shape(1) > 0);
  OCTAVO_CHECK(logits.shape(0) == static_cast<int>(rows.size()));
  OCTAVO_CHECK(!previous || (previous->ndim() == 1 && previous->dtype() == mx::int32));
  int count = -1;
  bool hashed = false;
  for (const RowSampling& row : rows) {
    check_row(row, logits.shape(1), previous ? previous->shape(0) : 0);
    count = std::max(count, row.logprobs);
    hashed = hashed || row.hash_logits;
  }
  const auto shared = std::make_shared<const std::vector<RowSampling>>(std::move(rows));
  const Draws draws{.logits = logits, .rows = shared, .previous = previous};
  const bool splits = uses_metal() && logits.shape(1) <= metal::kMostLogits;
  const bool any_on_device = splits && std::ranges::any_of(*shared, is_drawn_on_device);
  if (!any_on_device) return draws.make({}, cpu_stream(), count, hashed);
  const Drawn on_device = draws.make({.on_cpu = false}, kernel_stream(), -1, false);
  if (std::ranges::all_of(*shared, is_drawn_on_device)) return on_device;
  Drawn on_cpu = draws.make({.on_device = false}, cpu_stream(), count, hashed);
  on_cpu.tokens = place_tokens(on_device.tokens, draws.cpu_rows(), on_cpu.tokens);
  return on_cpu;
}

Logprobs logprobs_of(const mx::array& logits, std::span<const TokenId> tokens, int count) {
  OCTAVO_CHECK(logits.ndim() == 2 && logits.dtype() == mx::float32);
  OCTAVO_CHECK(logits.shape(0) == static_cast<int>(tokens.size()));
  OCTAVO_CHECK(0 <= count && count <= logits.shape(1));
  for (TokenId token : tokens) OCTAVO_CHECK(0 <= token && token < logits.shape(1));
  Outputs made;
  made.add_logprobs(logits.shape(0), count);
  return logprobs_at(
      mx::array::make_arrays(std::move(made.shapes), made.dtypes,
                             std::make_shared<LogprobsOf>(cpu_stream(), tokens, count), {logits}),
      0);
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

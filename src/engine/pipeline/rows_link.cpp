#include "engine/pipeline/rows_link.h"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/thread_name.h"
#include "base/widen.h"
#include "kernels/runtime/primitive.h"

namespace octavo {

RowsSender::RowsSender(TensorLinks& links, int peer)
    : links_(links), peer_(peer), thread_([this] { run(); }) {}

RowsSender::~RowsSender() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RowsSender::send(uint64_t step, RowBytes bytes) {
  const std::lock_guard lock(mutex_);
  if (step < next_step_) return;
  OCTAVO_CHECK(step == next_step_);
  ++next_step_;
  if (failure_) return;
  waiting_.push_back(std::move(bytes));
  changed_.notify_all();
}

void RowsSender::restart() {
  const std::lock_guard lock(mutex_);
  next_step_ = 0;
}

std::optional<std::string> RowsSender::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void RowsSender::run() {
  name_this_thread("send-rows");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const RowBytes bytes = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::optional<std::string> error;
    try {
      links_.send(peer_, bytes);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
    lock.lock();
    if (!error) continue;
    failure_ = error;
    waiting_.clear();
  }
}

RowsReceiver::RowsReceiver(TensorLinks& links, int peer, std::function<void()> on_arrival)
    : links_(links), peer_(peer), on_arrival_(std::move(on_arrival)), thread_([this] { run(); }) {}

RowsReceiver::~RowsReceiver() {
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waits = !expected_.empty();
  }
  changed_.notify_all();
  if (waits) links_.stop();
  thread_.join();
}

void RowsReceiver::expect(size_t bytes) {
  const std::lock_guard lock(mutex_);
  expected_.push_back(bytes);
  changed_.notify_all();
}

bool RowsReceiver::has_arrived() const {
  const std::lock_guard lock(mutex_);
  return failure_.has_value() || !arrived_.empty();
}

RowBytes RowsReceiver::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_.has_value() || !arrived_.empty(); });
  if (arrived_.empty()) throw LinkError(*failure_);
  RowBytes bytes = std::move(arrived_.front());
  arrived_.pop_front();
  return bytes;
}

void RowsReceiver::run() {
  name_this_thread("receive-rows");
  std::unique_lock lock(mutex_);
  while (!failure_) {
    changed_.wait(lock, [&] { return stopping_ || !expected_.empty(); });
    if (stopping_) return;
    const size_t size = expected_.front();
    lock.unlock();
    RowBytes bytes;
    std::optional<std::string> error;
    try {
      bytes.resize(size);
      links_.receive(peer_, bytes);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
    lock.lock();
    expected_.pop_front();
    failure_ = error;
    if (!error) arrived_.push_back(std::move(bytes));
    changed_.notify_all();
    lock.unlock();
    on_arrival_();
    lock.lock();
  }
}

namespace {

// inputs: rows, and the per-layer rows if there are any. The output has no meaning.
class SendRows : public mx::Primitive {
 public:
  SendRows(mx::Stream stream, uint64_t step, RowsSender& sender)
      : mx::Primitive(stream), step_(step), sender_(sender) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    allocate(outputs[0]);
    std::vector<std::span<const std::byte>> parts;
    for (const auto& input : inputs) {
      require_contiguous(input);
      parts.emplace_back(input.data<std::byte>(), input.nbytes());
    }
    // An exception must not leave MLX's thread; without memory for the rows, the process ends.
    run_on_cpu(*this, [parts, step = step_, sender = &sender_]() noexcept {
      RowBytes bytes;
      for (const auto part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
      sender->send(step, std::move(bytes));
    });
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("rows are sent on the CPU");
  }
  const char* name() const override { return "SendRows"; }
  bool is_equivalent(const mx::Primitive&) const override { return false; }

 private:
  uint64_t step_;
  RowsSender& sender_;
};

size_t per_layer_columns(const DecoderPlan& plan) {
  return plan.per_layer_input ? widen(plan.per_layer_input->width) * plan.layers.size() : 0;
}

mx::array array_of(std::span<const std::byte> bytes, mx::Shape shape, mx::Dtype dtype) {
  mx::array out(mx::allocator::malloc(bytes.size()), std::move(shape), dtype);
  std::memcpy(out.data<std::byte>(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

size_t passed_row_bytes(const DecoderPlan& plan, DType dtype) {
  return (widen(plan.hidden) + per_layer_columns(plan)) * size_of(dtype);
}

mx::array send_rows(const Embedded& rows, uint64_t step, RowsSender& sender) {
  std::vector<mx::array> inputs = {rows.rows};
  if (rows.per_layer) inputs.push_back(*rows.per_layer);
  // On Metal too: the network is the host's.
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array({1}, mx::uint8, std::make_shared<SendRows>(stream, step, sender),
                   std::move(inputs));
}

Embedded received_rows(const RowBytes& bytes, int rows, const DecoderPlan& plan, DType dtype) {
  OCTAVO_CHECK(bytes.size() == widen(rows) * passed_row_bytes(plan, dtype));
  const size_t main = widen(rows) * widen(plan.hidden) * size_of(dtype);
  const mx::Dtype type = mlx_dtype(dtype);
  Embedded out{array_of(std::span(bytes).first(main), {rows, plan.hidden}, type), std::nullopt};
  if (plan.per_layer_input) {
    out.per_layer = array_of(std::span(bytes).subspan(main),
                             {rows, static_cast<int>(per_layer_columns(plan))}, type);
  }
  return out;
}

}  // namespace octavo

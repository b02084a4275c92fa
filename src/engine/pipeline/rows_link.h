// rows_link.h - passes the rows of steps on to the next stage, and takes those of the previous one.
// Neither blocks the thread that queues kernels, nor MLX's own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/tensor_links.h"
#include "models/decoder_model.h"

namespace octavo {

using RowBytes = std::vector<std::byte>;

// Sends on a thread of its own. Steps are numbered from 0 since the last restart(), and sent in
// order.
class RowsSender {
 public:
  // `links` must outlive it.
  RowsSender(TensorLinks& links, int peer);
  // Sends what was passed on, unless the links have failed or are stopped.
  ~RowsSender();
  RowsSender(const RowsSender&) = delete;
  RowsSender& operator=(const RowsSender&) = delete;

  // Ignored if the step's rows were passed on before. After a failure, bytes are discarded. Any
  // thread.
  void send(uint64_t step, RowBytes bytes);
  // The next step is number 0 again.
  void restart();
  // The error of the links, which cannot be used any more. Any thread.
  std::optional<std::string> failure() const;

 private:
  void run();

  TensorLinks& links_;
  int peer_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  uint64_t next_step_ = 0;
  std::deque<RowBytes> waiting_;
  std::optional<std::string> failure_;
  bool stopping_ = false;
  std::thread thread_;
};

// Receives on a thread of its own, in the order of expect().
class RowsReceiver {
 public:
  // `links` must outlive it. `on_arrival` is called on the thread when rows have arrived, or the
  // links have failed.
  RowsReceiver(TensorLinks& links, int peer, std::function<void()> on_arrival);
  // Stops the links, if rows are still expected.
  ~RowsReceiver();
  RowsReceiver(const RowsReceiver&) = delete;
  RowsReceiver& operator=(const RowsReceiver&) = delete;

  // The next step's rows have this size.
  void expect(size_t bytes);
  // Whether take() would not wait. Any thread.
  bool has_arrived() const;
  // The rows of the oldest step that were not taken. Waits for them; throws LinkError.
  RowBytes take();

 private:
  void run();

  TensorLinks& links_;
  int peer_;
  std::function<void()> on_arrival_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<size_t> expected_;
  std::deque<RowBytes> arrived_;
  std::optional<std::string> failure_;
  bool stopping_ = false;
  std::thread thread_;
};

// Bytes that one row has between stages.
size_t passed_row_bytes(const DecoderPlan& plan, DType dtype);

// Passes the rows, and ForwardContext::per_layer if there is one, to `sender` when they have been
// computed. Returns an array that is available afterwards; evaluate it with the step's results.
mx::array send_rows(const Embedded& rows, uint64_t step, RowsSender& sender);
// The rows of a step, from the bytes that the previous stage sent.
Embedded received_rows(const RowBytes& bytes, int rows, const DecoderPlan& plan, DType dtype);

}  // namespace octavo

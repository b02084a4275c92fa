#include "engine/tensor/link_exchange.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/widen.h"
#include "engine/tensor/part_rows.h"
#include "engine/tensor/peer_sender.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// Sent without waiting for the peer: the socket takes so much.
constexpr size_t kSmallSend = 16u << 10;

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

}  // namespace

// What the kernels do, on MLX's thread for the CPU.
class LinkExchange::Pipe {
 public:
  explicit Pipe(TensorLinks& links) : links_(links) {
    for (int peer = 0; peer < links.size(); ++peer)
      if (peer != links.rank()) senders_.emplace_back(links, peer);
  }

  int rank() const { return links_.rank(); }
  int size() const { return links_.size(); }

  // After a failure, `out` is all zeros. An exception must not leave MLX's thread.
  void run(Kind kind, const PartRows& rows, ConstBytes parts, Bytes out) noexcept {
    try {
      if (failed_.load()) throw LinkError("the links have failed");
      if (kind == Kind::kFromFirst) {
        from_first(parts, out);
      } else {
        gather(kind, rows, parts, out);
      }
    } catch (const std::exception& error) {
      fail(error.what());
      std::memset(out.data(), 0, out.size());
    }
  }

  void check() const {
    if (!failed_.load()) return;
    const std::lock_guard lock(mutex_);
    throw LinkError(failure_);
  }

 private:
  void fail(const std::string& error) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = error;
    }
    failed_.store(true);
    links_.stop();  // the other ranks wait for this one
  }

  void from_first(ConstBytes values, Bytes out) {
    if (rank() != 0) return links_.receive(0, out);
    std::memcpy(out.data(), values.data(), out.size());
    for (int peer = 1; peer < size(); ++peer) send(peer, out);
  }

  void gather(Kind kind, const PartRows& rows, ConstBytes parts, Bytes out) {
    const size_t count = rows.part_bytes() > 0 ? parts.size() / rows.part_bytes() : 0;
    ConstBytes own = parts;
    if (!rows.is_all_real()) {
      packed_.resize(count * rows.real_bytes(rank()));
      rows.pack(parts, packed_);
      own = packed_;
    }
    if (kind == Kind::kGatherAtFirst && rank() != 0) return send(0, own);
    const bool to_all = kind == Kind::kGather && !own.empty();
    const bool is_small = own.size() <= kSmallSend;
    if (to_all && is_small) each_peer([&](int peer) { send(peer, own); });
    if (to_all && !is_small) start_sending(own);
    rows.place(rank(), own, out);
    each_peer([&](int peer) {
      received_.resize(count * rows.real_bytes(peer));
      if (received_.empty()) return;
      links_.receive(peer, received_);
      rows.place(peer, received_, out);
    });
    if (to_all && !is_small)
      for (PeerSender& sender : senders_) sender.wait();
  }

  void send(int peer, ConstBytes bytes) {
    if (!bytes.empty()) links_.send(peer, bytes);
  }

  void start_sending(ConstBytes bytes) {
    for (PeerSender& sender : senders_) sender.start(bytes);
  }

  // In a different order on every rank, so that not all wait for the same one.
  template <typename Call>
  void each_peer(const Call& call) const {
    for (int i = 1; i < size(); ++i) call((rank() + i) % size());
  }

  TensorLinks& links_;
  std::deque<PeerSender> senders_;
  std::vector<std::byte> packed_, received_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;  // guards failure_
  std::string failure_;
};

namespace {

// inputs: this rank's rows, and the result of the exchange before, if there was one.
class Exchange : public mx::Primitive {
 public:
  Exchange(mx::Stream stream, LinkExchange::Kind kind, PartRows rows,
           std::shared_ptr<LinkExchange::Pipe> pipe)
      : mx::Primitive(stream), kind_(kind), rows_(std::move(rows)), pipe_(std::move(pipe)) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    require_contiguous(inputs[0]);
    allocate(outputs[0]);
    const ConstBytes parts(inputs[0].data<std::byte>(), inputs[0].nbytes());
    const Bytes out(outputs[0].data<std::byte>(), outputs[0].nbytes());
    run_on_cpu(*this, [kind = kind_, rows = rows_, pipe = pipe_, parts, out]() noexcept {
      pipe->run(kind, rows, parts, out);
    });
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("ranks exchange rows on the CPU");
  }
  const char* name() const override { return "Exchange"; }
  // Every exchange must happen.
  bool is_equivalent(const mx::Primitive&) const override { return false; }

 private:
  LinkExchange::Kind kind_;
  PartRows rows_;
  std::shared_ptr<LinkExchange::Pipe> pipe_;
};

}  // namespace

LinkExchange::LinkExchange(TensorLinks& links) : pipe_(std::make_shared<Pipe>(links)) {}

LinkExchange::~LinkExchange() = default;

OutputShare LinkExchange::share() const { return {pipe_->rank(), pipe_->size()}; }

mx::array LinkExchange::call(Kind kind, const mx::array& input, mx::Shape shape, mx::Dtype dtype,
                             std::span<const int> outputs, int unit) {
  std::vector<mx::array> inputs = {input};
  if (last_) inputs.push_back(*last_);
  // On Metal too: the network is the host's.
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  last_.emplace(std::move(shape), dtype,
                std::make_shared<Exchange>(stream, kind,
                                           PartRows(share(), outputs, unit, dtype.size()), pipe_),
                std::move(inputs));
  return *last_;
}

mx::array LinkExchange::gather(const mx::array& parts, std::span<const int> outputs, int unit) {
  int total = 0;
  for (const int each : outputs) total += each;
  return call(Kind::kGather, parts, {parts.shape(0), total}, parts.dtype(), outputs, unit);
}

mx::array LinkExchange::gather_at_first(const mx::array& parts, int outputs) {
  const mx::Shape shape = share().rank == 0 ? mx::Shape{parts.shape(0), outputs} : mx::Shape{1, 1};
  return call(Kind::kGatherAtFirst, parts, shape, parts.dtype(), std::array{outputs}, kStripRows);
}

mx::array LinkExchange::from_first(const mx::array& values, int count) {
  OCTAVO_CHECK(values.dtype() == mx::int32);
  return call(Kind::kFromFirst, values, {count}, mx::int32, {}, 1);
}

void LinkExchange::check() const { pipe_->check(); }

}  // namespace octavo

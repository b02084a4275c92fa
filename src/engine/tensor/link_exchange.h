// link_exchange.h - passes parts of rows between ranks over their tensor links, as kernels of the
// graph. Engine thread only, except where noted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "distributed/tensor_links.h"
#include "models/rank_exchange.h"

namespace octavo {

// After a failure of the links all results are zeros, so that queued steps end. Their results must
// not be used: see check().
class LinkExchange : public RankExchange {
 public:
  // `links`: of all pairs of ranks; must outlive this object, and all queued kernels.
  explicit LinkExchange(TensorLinks& links);
  ~LinkExchange() override;
  LinkExchange(const LinkExchange&) = delete;
  LinkExchange& operator=(const LinkExchange&) = delete;

  OutputShare share() const override;
  mx::array gather(const mx::array& parts, std::span<const int> outputs, int unit) override;
  mx::array gather_at_first(const mx::array& parts, int outputs) override;
  mx::array from_first(const mx::array& values, int count) override;

  // Before a step's first call, so that no results of the previous step are kept.
  void begin_step() { last_.reset(); }
  // Throws LinkError if the links have failed.
  void check() const;

  enum class Kind : uint8_t { kGather, kGatherAtFirst, kFromFirst };
  class Pipe;

 private:
  mx::array call(Kind kind, const mx::array& input, mx::Shape shape, mx::Dtype dtype,
                 std::span<const int> outputs, int unit);

  std::shared_ptr<Pipe> pipe_;
  std::optional<mx::array> last_;  // the result of the previous call, which the next one waits for
};

}  // namespace octavo

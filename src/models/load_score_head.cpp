#include "models/load_score_head.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/linear.h"

namespace octavo {
namespace {

std::vector<float> host_floats(const mx::array& values) {
  mx::array wide = mx::astype(values, mx::float32);
  wide.eval();
  return {wide.data<float>(), wide.data<float>() + wide.size()};
}

// [weight.rows, weight.cols], decoded.
std::vector<float> decoded_rows(const Weight& weight, int rows) {
  return host_floats(mx::contiguous(embed(weight, mx::arange(rows), mx::float32)));
}

class ScoreHeadLoader {
 public:
  ScoreHeadLoader(int hidden, WeightSource& source) : hidden_(hidden), source_(source) {}

  ScoreHead::Matrix matrix(const std::string& name, int rows, bool biased) {
    ScoreHead::Matrix matrix{.rows = rows, .columns = hidden_};
    const Weight weight = source_.matrix(name, rows, hidden_);
    if (!source_.only_checks()) matrix.weight = decoded_rows(weight, rows);
    if (biased) matrix.bias = vector(name + ".bias", rows);
    return matrix;
  }

  // The first of two rows of a larger matrix less the second.
  ScoreHead::Matrix difference(const std::string& name, int rows, const std::vector<int>& picks) {
    constexpr size_t kTwo = 2;
    OCTAVO_CHECK(picks.size() == kTwo);
    ScoreHead::Matrix matrix{.rows = 1, .columns = hidden_};
    const Weight weight = source_.matrix(name, rows, hidden_, picks);
    if (source_.only_checks()) return matrix;
    const std::vector<float> both = decoded_rows(weight, kTwo);
    const auto width = static_cast<size_t>(hidden_);
    for (size_t i = 0; i < width; ++i) matrix.weight.push_back(both[i] - both[width + i]);
    return matrix;
  }

  std::vector<float> vector(const std::string& name, int size) {
    const mx::array values = source_.vector(name, size);
    return source_.only_checks() ? std::vector<float>{} : host_floats(values);
  }

 private:
  int hidden_;
  WeightSource& source_;
};

}  // namespace

std::shared_ptr<const ScoreHead> load_score_head(const ScoreHeadPlan& plan, int hidden,
                                                 WeightSource& source) {
  ScoreHeadLoader loader(hidden, source);
  ScoreHead::Layers layers{.activation = plan.activation};
  if (!plan.dense.empty()) layers.dense = loader.matrix(plan.dense, hidden, plan.dense_bias);
  if (!plan.norm.empty()) {
    layers.norm = ScoreHead::LayerNorm{.weight = loader.vector(plan.norm + ".weight", hidden),
                                       .eps = plan.norm_eps};
    if (plan.norm_bias) layers.norm->bias = loader.vector(plan.norm + ".bias", hidden);
  }
  layers.out = plan.rows.empty() ? loader.matrix(plan.out, plan.labels, plan.out_bias)
                                 : loader.difference(plan.out, plan.out_rows, plan.rows);
  if (source.only_checks()) return nullptr;
  return std::make_shared<const ScoreHead>(std::move(layers));
}

}  // namespace octavo

// Everything besides products and attention has the same bits on every instruction set of this
// machine: norms, activations, rotations, writes to pages, states, routing, sampling, embeddings.
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/activation.h"
#include "kernels/add_rows.h"
#include "kernels/cpu/isa.h"
#include "kernels/gate_rows.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/sampling.h"
#include "kernels/testing/conv_fixture.h"
#include "kernels/testing/delta_fixture.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/latent_fixture.h"
#include "kernels/testing/mamba_fixture.h"
#include "kernels/testing/qkv_variants.h"
#include "kernels/testing/random_logits.h"
#include "kernels/testing/routing_choices.h"
#include "kernels/testing/weights.h"

namespace octavo {
namespace {

using Operation = std::function<std::vector<mx::array>()>;

std::vector<std::byte> outputs_on(cpu::Isa isa, const Operation& operation) {
  const IsaScope scope(isa);
  std::vector<std::byte> bytes;
  for (mx::array out : operation()) {
    out.eval();
    bytes.insert(bytes.end(), out.data<std::byte>(), out.data<std::byte>() + out.nbytes());
  }
  return bytes;
}

// The number of comparisons with the first of `sets`.
int expect_same_outputs(const std::vector<cpu::Isa>& sets, const Operation& operation) {
  if (sets.empty()) return 0;
  const auto expected = outputs_on(sets[0], operation);
  EXPECT_FALSE(expected.empty());
  for (size_t i = 1; i < sets.size(); ++i) {
    const auto actual = outputs_on(sets[i], operation);
    const bool same = actual.size() == expected.size() &&
                      std::memcmp(actual.data(), expected.data(), actual.size()) == 0;
    EXPECT_TRUE(same) << cpu::name_of(sets[i]) << " differs from " << cpu::name_of(sets[0]);
  }
  return static_cast<int>(sets.size()) - 1;
}

class OperationSets : public testing::Test {
 protected:
  void SetUp() override {
    if (sets_.size() < 2) GTEST_SKIP() << "this machine has one instruction set";
  }
  void TearDown() override { std::printf("%d comparisons\n", comparisons_); }

  void compare(const Operation& operation) {
    comparisons_ += expect_same_outputs(sets_, operation);
  }

  // Normal numbers, and some that are special: zeros, denormals, tiny and large ones.
  mx::array mixed(const mx::Shape& shape, DType dtype) {
    mx::array plain = random_array(random_, shape);
    auto* values = plain.data<float>();
    const float specials[] = {0.0f, -0.0f, 1e-40f, -1e-39f, 1e-38f, -3e-20f, 6e-8f, 300.0f, -80.0f};
    for (size_t i = 0; i < plain.size(); ++i)
      if (random_() % 16 == 0) values[i] = specials[random_() % std::size(specials)];
    mx::array out = mx::contiguous(mx::astype(plain, mlx_dtype(dtype)));
    out.eval();
    return out;
  }

  const std::vector<cpu::Isa> sets_ = cpu::available_isas();
  const std::vector<DType> dtypes_ = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  std::mt19937 random_{23};
  int comparisons_ = 0;
};

TEST_F(OperationSets, Norms) {
  for (const DType dtype : dtypes_) {
    for (const DType weights : dtypes_) {
      for (const int width : {1, 16, 75, 576, 1029}) {
        for (const Norm kind : {Norm::kRms, Norm::kLayer}) {
          SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << width);
          const mx::array x = mixed({9, width}, dtype), y = mixed({9, width}, dtype);
          NormSpec spec{.weight = mixed({width}, weights), .eps = 1e-5f, .kind = kind};
          if (kind == Norm::kLayer) spec.bias = mixed({width}, weights);
          compare([&] { return std::vector{norm(x, spec)}; });
          if (kind == Norm::kRms && width % 3 == 0)
            compare([&] { return std::vector{group_norm(x, spec, 3)}; });
          compare([&] {
            return std::vector{add_rows(x, y, {.norm = spec, .scale = 0.3f, .out_scale = 1.7f})};
          });
        }
      }
    }
  }
}

TEST_F(OperationSets, Activations) {
  for (const DType dtype : dtypes_) {
    for (const int width : {5, 64, 203}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << width);
      const mx::array gate = mixed({17, width}, dtype), up = mixed({17, width}, dtype);
      for (const auto kind :
           {Activation::kSilu, Activation::kGeluTanh, Activation::kRelu, Activation::kBoundedSilu})
        compare([&] { return std::vector{gated_activation(gate, up, kind)}; });
      for (const auto kind : {Gate::kPlain, Gate::kSigmoid})
        compare([&] { return std::vector{gate_rows({up}, {gate}, width, kind)}; });
    }
  }
}

TEST_F(OperationSets, Rotations) {
  for (const DType dtype : dtypes_) {
    for (const int dim : {32, 72, 128}) {
      const mx::array x = mixed({8, 3, dim}, dtype);
      const mx::array positions =
          int_array({0, 1, 7, 500, 4095, 131071, 1048575, std::numeric_limits<int>::max()});
      mx::array frequencies = mx::exp(mx::negative(random_array(random_, {dim / 2 - 1})));
      frequencies.eval();
      compare([&] { return std::vector{rope(x, positions, frequencies, 1.1f)}; });
    }
  }
}

TEST_F(OperationSets, WritesToPages) {
  for (const DType dtype : dtypes_) {
    for (const KvFormat format : {KvFormat::kPlain, KvFormat::kInt8}) {
      for (const int dim : {64, 72}) {
        PagedCase c = qkv_variants::case_of(dtype, dim);
        c.geometry.format = format;
        for (const auto& variant : qkv_variants::variants(random_, dim, mlx_dtype(dtype))) {
          SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << dim << " " << variant.name);
          const int rows = PagedFixture(c, KernelPath::kNative, 3).new_rows();
          const mx::array qkv = qkv_variants::random_rows(random_, c, variant.options, rows);
          const auto write = [&] {
            const PagedFixture fixture(c, KernelPath::kNative, 3);
            return qkv_write(fixture.pages(), qkv, fixture.layout(), fixture.tables(),
                             variant.options);
          };
          compare([&] { return std::vector{write().q}; });
          compare([&] { return std::vector{write().pages.bytes}; });
        }
      }
    }
  }
}

TEST_F(OperationSets, WritesOfLatentRows) {
  for (const DType dtype : dtypes_) {
    const PagedCase c = latent_fixture::case_of({48, 16, 40, 6}, dtype);
    const int rows = PagedFixture(c, KernelPath::kNative, 3).new_rows();
    const auto in = latent_fixture::inputs_of({48, 16, 40, 6}, dtype, rows);
    SCOPED_TRACE(name_of(dtype));
    compare([&] {
      const PagedFixture fixture(c, KernelPath::kNative, 3);
      const QkvWritten written = latent_write(fixture.pages(), in.rows, in.absorbed,
                                              fixture.layout(), fixture.tables(), in.options);
      return std::vector{written.q, written.pages.bytes};
    });
  }
}

TEST_F(OperationSets, Convolutions) {
  constexpr int kConvRows = 40;
  for (const DType dtype : dtypes_) {
    for (const DType weights : dtypes_) {
      for (const int conv_rows : {2, 3}) {
        for (const bool biased : {false, true}) {
          const auto s = conv_fixture::make_subject(
              {.dtype = dtype, .conv_rows = conv_rows, .biased = biased, .weights = weights},
              kConvRows);
          compare([&] {
            StateFixture fixture(s.geometry, KernelPath::kNative,
                                 conv_fixture::page_bytes_of(s.geometry), 2);
            const auto [y, pages] = causal_conv(fixture.pages(), s.x, s.weights, s.options,
                                                state_layout({kConvRows - 1, 1}),
                                                fixture.table({0, 1}, {{-1, 0}, {-1, 0}}));
            return std::vector{y, pages.bytes};
          });
        }
      }
    }
  }
}

// Enough rows for the copies that narrow registers make of a state, and too few for them.
TEST_F(OperationSets, GatedDelta) {
  for (const DType dtype : dtypes_) {
    for (const auto& shape :
         {delta_fixture::Shape{2, 4, 64, 80}, delta_fixture::Shape{1, 2, 192, 48},
          delta_fixture::Shape{2, 2, 128, 128}}) {
      for (const int tokens : {1, 5, 90}) {
        SCOPED_TRACE(testing::Message()
                     << name_of(dtype) << " " << shape.k_dim << " " << tokens << " tokens");
        const auto plain = delta_fixture::make_subject(dtype, shape, tokens);
        for (const auto& s : {plain, delta_fixture::with_saturated_gates(plain)}) {
          compare([&] {
            StateFixture fixture(s.geometry, KernelPath::kNative,
                                 delta_fixture::page_bytes_of(s.geometry), 1);
            const auto first = gated_delta(fixture.pages(), s.rows, s.weights, s.options,
                                           state_layout({tokens}), fixture.table({0}, {{-1, 0}}));
            fixture.rebind(first.pages);
            const auto second = gated_delta(fixture.pages(), s.rows, s.weights, s.options,
                                            state_layout({tokens}), fixture.table({0}, {{0, 1}}));
            return std::vector{first.out, second.out, second.pages.bytes};
          });
        }
      }
    }
  }
}

TEST_F(OperationSets, Mamba2) {
  for (const DType dtype : dtypes_) {
    for (const auto& shape :
         {mamba_fixture::Shape{2, 4, 64, 80}, mamba_fixture::Shape{1, 2, 192, 48},
          mamba_fixture::Shape{1, 3, 128, 64}}) {
      for (const int tokens : {1, 5, 90}) {
        SCOPED_TRACE(testing::Message()
                     << name_of(dtype) << " " << shape.state_dim << " " << tokens << " tokens");
        const auto plain = mamba_fixture::make_subject(dtype, shape, tokens);
        for (const auto& s : {plain, mamba_fixture::with_saturated_steps(plain)}) {
          compare([&] {
            StateFixture fixture(s.geometry, KernelPath::kNative,
                                 mamba_fixture::page_bytes_of(s.geometry), 1);
            const auto first = mamba2(fixture.pages(), s.rows, s.weights, s.options,
                                      state_layout({tokens}), fixture.table({0}, {{-1, 0}}));
            fixture.rebind(first.pages);
            const auto second = mamba2(fixture.pages(), s.rows, s.weights, s.options,
                                       state_layout({tokens}), fixture.table({0}, {{0, 1}}));
            return std::vector{first.out, second.out, second.pages.bytes};
          });
        }
      }
    }
  }
}

TEST_F(OperationSets, Routing) {
  for (const ExpertChoice& choice : every_choice()) {
    const mx::array logits = mixed({33, choice.experts}, DType::kFloat32);
    const mx::array bias = random_array(random_, {choice.experts});
    const mx::array scales = random_array(random_, {choice.experts});
    for (const RoutingOptions& options :
         {RoutingOptions{}, RoutingOptions{.bias = bias, .expert_scales = scales}}) {
      compare([&] {
        const auto routing = route_experts(logits, choice, options);
        return std::vector{routing.ids, routing.weights};
      });
    }
  }
}

TEST_F(OperationSets, Sampling) {
  constexpr int kSampledRows = 24;
  const auto rules = std::make_shared<const LogitRules>(
      LogitRules{.logit_bias = {{3, 1.5f}, {7, -100.0f}}, .bad_words = {{11}}, .held_back = {5}});
  for (const int vocab : {17, 1000, 49152, 151936}) {
    for (int shape = 0; shape < kLogitShapes; ++shape) {
      SCOPED_TRACE(testing::Message() << vocab << " " << shape);
      std::vector<float> logits;
      std::vector<RowSampling> rows;
      for (uint32_t i = 0; i < kSampledRows; ++i) {
        const auto row =
            random_logits(random_, static_cast<size_t>(vocab), static_cast<LogitShape>(shape));
        logits.insert(logits.end(), row.begin(), row.end());
        rows.push_back({.temperature = i % 8 == 0 ? 0 : 0.4f + 0.2f * static_cast<float>(i % 5),
                        .top_p = i % 3 == 0 ? 0.9f : 1,
                        .min_p = i % 5 == 0 ? 0.05f : 0,
                        .top_k = i % 4 == 0 ? 13 : 0,
                        .seed = 99,
                        .position = i,
                        .logprobs = 8});
        if (i % 2 == 1) rows.back().rules = rules;
      }
      const mx::array all(logits.begin(), {kSampledRows, vocab}, mx::float32);
      compare([&] {
        const Drawn drawn = sample(all, rows);
        return std::vector{drawn.tokens, drawn.logprobs->values, drawn.logprobs->ids,
                           drawn.logprobs->ranks};
      });
    }
  }
}

TEST_F(OperationSets, Embeddings) {
  for (const Weight& table : every_format(random_, 37, 256)) {
    const mx::array tokens = int_array({0, 36, 5, 17, 5});
    SCOPED_TRACE(table.describe());
    for (const DType dtype : dtypes_)
      compare([&] {
        return std::vector{embed(table, tokens, mlx_dtype(dtype), KernelPath::kNative, 22.6f)};
      });
  }
}

}  // namespace
}  // namespace octavo

// Prints a hash of every raw CPU kernel's output for fixed inputs. An arm64 build must print what x86
// prints with OCTAVO_ISA=avx2. Exits with status 1 if a quantised or bfloat16 product or bfloat16
// attention differs from its reference. Links no MLX: tools/test_neon.sh cross-compiles it.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <span>
#include <utility>

#include "attention_check.h"
#include "hash_support.h"
#include "kernels/cpu/causal_conv.h"
#include "kernels/cpu/expert_mlp.h"
#include "kernels/cpu/expert_routing.h"
#include "kernels/cpu/gated_delta.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/latent_write.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/logprobs.h"
#include "kernels/cpu/qkv_write.h"
#include "kernels/cpu/sampling.h"
#include "product_hashes.h"

namespace octavo {
namespace {

constexpr int kTokens = 300;

const std::vector<int32_t>& positions() {
  static const auto all = [] {
    std::vector<int32_t> out;
    for (int32_t t = 0; t < kTokens; ++t) out.push_back(t * t * 13);  // up to a million
    return out;
  }();
  return all;
}

std::vector<float> frequencies(int pairs) {
  std::vector<float> out;
  for (int i = 0; i < pairs; ++i) out.push_back(1 / static_cast<float>(1 + i * i));
  return out;
}

// One sequence of kTokens tokens in pages of 24, in reverse page order.
class OneSequence {
 public:
  explicit OneSequence(PageGeometry geometry) : geometry_(geometry) {
    geometry_.block_tokens = kBlock;
    memory_.assign(geometry_.page_bytes() * kPages, std::byte{0xff});
    for (int32_t i = 0; i < kPages; ++i) table_.push_back(kPages - 1 - i);
  }
  cpu::PagedBatch batch() {
    return {.cu_seqlens_q = starts_.data(),
            .context_lens = context_.data(),
            .block_tables = table_.data(),
            .table_columns = kPages,
            .sequences = 1,
            .pages = memory_.data(),
            .page_count = kPages,
            .page_stride = static_cast<int64_t>(geometry_.page_bytes()),
            .geometry = geometry_};
  }

 private:
  static constexpr int kBlock = 24;
  static constexpr int kPages = (kTokens + kBlock - 1) / kBlock;

  PageGeometry geometry_;
  std::vector<std::byte> memory_;
  std::vector<int32_t> table_;
  std::vector<int32_t> starts_ = {0, kTokens};
  std::vector<int32_t> context_ = {kTokens};
};

void hash_attention(Random& random, DType dtype, KvFormat format, int k_dim, int v_dim, int window,
                    float soft_cap) {
  constexpr int kQueryHeads = 6, kKvHeads = 2;
  OneSequence sequence(
      {.kv_heads = kKvHeads, .k_dim = k_dim, .v_dim = v_dim, .dtype = dtype, .format = format});
  const cpu::PagedBatch batch = sequence.batch();
  const auto q = numbers(random, static_cast<size_t>(kTokens * kQueryHeads * k_dim), dtype);
  const auto k = numbers(random, static_cast<size_t>(kTokens * kKvHeads * k_dim), dtype);
  const auto v = numbers(random, static_cast<size_t>(kTokens * kKvHeads * v_dim), dtype);
  const auto norm = numbers(random, static_cast<size_t>(k_dim), DType::kFloat32);
  const auto turning = frequencies(k_dim / 2 - 1);
  std::vector<std::byte> q_out(q.size());
  cpu::QkvWriteArgs write{
      .batch = batch,
      .tokens = kTokens,
      .rows = {.q = q.data(),
               .k = k.data(),
               .v = v.data(),
               .q_stride = kQueryHeads * k_dim,
               .k_stride = kKvHeads * k_dim,
               .v_stride = kKvHeads * v_dim,
               .dtype = dtype,
               .q_heads = kQueryHeads,
               .q_dim = k_dim,
               .q_norm = norm.data(),
               .k_norm = norm.data(),
               .eps = 1e-6f,
               .q_out = q_out.data(),
               .layout = {}},
      .rope = {.positions = positions().data(),
               .inverse_frequencies = turning.data(),
               .pairs = k_dim / 2 - 1,
               .magnitude = 1.1f},
      .position_scale = {.positions = positions().data(), .beta = 0.1f, .period = 4096}};
  cpu::qkv_write(write);
  std::vector<std::byte> out(static_cast<size_t>(kTokens * kQueryHeads * v_dim) * size_of(dtype));
  const std::vector<float> sinks = {0.0f, 1.0f, -3.0f, 2.5f, -1.0f, 0.5f};
  cpu::paged_attention({.batch = batch,
                        .q = q_out.data(),
                        .out = out.data(),
                        .dtype = dtype,
                        .q_heads = kQueryHeads,
                        .options = {.scale = 0.125f,
                                    .window = window,
                                    .soft_cap = soft_cap,
                                    .sinks = window > 0 ? sinks.data() : nullptr}});
  print_hash(fmt::format("attention {}{} {}/{} window {} cap {}", name_of(dtype),
                         format == KvFormat::kInt8 ? " int8" : "", k_dim, v_dim, window, soft_cap),
             out);
}

void hash_experts(Random& random, DType dtype, ExpertScore score) {
  constexpr int kExperts = 12, kTopK = 3;
  constexpr int64_t kTokens = 45, kHidden = 75, kInner = 41;
  std::vector<float> logits(static_cast<size_t>(kTokens * kExperts));
  for (auto& logit : logits) logit = random.number();
  std::vector<int32_t> ids(static_cast<size_t>(kTokens * kTopK));
  std::vector<float> weights(ids.size());
  cpu::route_experts({.logits = logits.data(),
                      .tokens = kTokens,
                      .choice = {.experts = kExperts,
                                 .top_k = kTopK,
                                 .score = score,
                                 .groups = 4,
                                 .top_groups = 2,
                                 .renormalize = true},
                      .ids = ids.data(),
                      .weights = weights.data()});
  const auto stack = [&](int64_t rows, int64_t cols) {
    const auto all = numbers(random, static_cast<size_t>(kExperts * rows * cols), dtype);
    WeightView source{.rows = rows, .cols = cols, .dtype = dtype, .data = all.data()};
    const PackedLayout layout = packed_layout(source);
    std::vector<std::byte> packed(static_cast<size_t>(kExperts * layout.bytes()));
    for (int64_t e = 0; e < kExperts; ++e, source.data += rows * source.row_bytes())
      pack_weight(source, layout, {}, packed.data() + e * layout.bytes());
    return std::pair(layout, std::move(packed));
  };
  const auto gate = stack(kInner, kHidden), up = stack(kInner, kHidden);
  const auto down = stack(kHidden, kInner);
  const auto x = numbers(random, static_cast<size_t>(kTokens * kHidden), dtype);
  std::vector<std::byte> out(x.size());
  cpu::expert_mlp({.x = x.data(),
                   .dtype = dtype,
                   .tokens = kTokens,
                   .experts = kExperts,
                   .top_k = kTopK,
                   .ids = ids.data(),
                   .weights = weights.data(),
                   .gate = {.layout = gate.first, .data = gate.second.data()},
                   .up = {.layout = up.first, .data = up.second.data()},
                   .down = {.layout = down.first, .data = down.second.data()},
                   .activation = Activation::kBoundedSilu,
                   .residual = x.data(),
                   .out = out.data()});
  print_hash(fmt::format("experts {} {}", name_of(dtype), static_cast<int>(score)), out);
}

// A convolution followed by the delta rule: two sequences, one of them new.
void hash_states(Random& random, DType dtype, int k_dim, int v_dim) {
  constexpr int64_t kTokens = 75, kKeyHeads = 2, kHeads = 6;
  constexpr int64_t kSequences = 2;
  const int64_t channels = 2 * kKeyHeads * k_dim + kHeads * v_dim;
  const int64_t width = channels + kHeads * v_dim + 2 * kHeads;
  cpu::StateBatch batch;
  batch.geometry = {.columns = kHeads + 1,
                    .heads = kHeads,
                    .k_dim = k_dim,
                    .v_dim = v_dim,
                    .conv_rows = 3,
                    .conv_units = static_cast<int>(channels / 16),
                    .unit_channels = 16,
                    .conv_dtype = dtype,
                    .conv_column = kHeads,
                    .units_per_page = static_cast<int>(channels / 16)};
  const std::vector<int32_t> starts = {0, 70, kTokens};
  // The first is new, in pages 0 to 6; the second continues in the pages after them.
  std::vector<int32_t> table(7, -1);
  for (int32_t page : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 7, 8, 9, 10, 11, 12, 13})
    table.push_back(page);
  batch.cu_seqlens_q = starts.data();
  batch.table = table.data();
  batch.table_columns = 2 * batch.geometry.columns;
  batch.sequences = kSequences;
  batch.page_count = kSequences * batch.geometry.columns;
  batch.page_stride = static_cast<int64_t>(
      std::max(batch.geometry.head_bytes(),
               batch.geometry.unit_bytes() * static_cast<size_t>(channels / 16)));
  std::vector<std::byte> pages(static_cast<size_t>(batch.page_count * batch.page_stride));
  batch.pages = pages.data();
  for (int64_t page = 7; page < batch.page_count; ++page) {
    const DType kept = page < 13 ? DType::kFloat32 : dtype;
    const auto values =
        numbers(random, static_cast<size_t>(batch.page_stride) / size_of(kept), kept);
    std::copy(values.begin(), values.end(), batch.pages + page * batch.page_stride);
  }
  const auto joined = numbers(random, static_cast<size_t>(kTokens * width), dtype);
  const auto taps = numbers(random, static_cast<size_t>(4 * channels), dtype);
  std::vector<std::byte> qkv(static_cast<size_t>(kTokens * channels) * size_of(dtype));
  cpu::causal_conv(batch, {.x = joined.data(),
                           .x_stride = width * static_cast<int64_t>(size_of(dtype)),
                           .dtype = dtype,
                           .channels = channels,
                           .past_rows = 3,
                           .taps = taps.data(),
                           .weight_dtype = dtype,
                           .silu = true,
                           .out = qkv.data()});
  std::vector<float> rates(kHeads), steps(kHeads);
  for (auto& rate : rates) rate = random.number() - 2;
  for (auto& step : steps) step = random.number();
  const auto norm = numbers(random, static_cast<size_t>(v_dim), dtype);
  std::vector<std::byte> out(static_cast<size_t>(kTokens * kHeads * v_dim) * size_of(dtype));
  cpu::gated_delta(batch, {.qkv = qkv.data(),
                           .qkv_stride = channels,
                           .gates = joined.data(),
                           .gates_stride = width,
                           .z_column = channels,
                           .a_column = channels + kHeads * v_dim + kHeads,
                           .b_column = channels + kHeads * v_dim,
                           .dtype = dtype,
                           .key_heads = kKeyHeads,
                           .value_heads = kHeads,
                           .k_dim = k_dim,
                           .v_dim = v_dim,
                           .a_log = rates.data(),
                           .dt_bias = steps.data(),
                           .norm = norm.data(),
                           .norm_dtype = dtype,
                           .norm_eps = 1e-6f,
                           .out = out.data()});
  print_hash(fmt::format("convolution {} {}", name_of(dtype), channels), qkv);
  print_hash(fmt::format("gated delta {} {}x{}", name_of(dtype), k_dim, v_dim), out);
  print_hash(fmt::format("states {} {}x{}", name_of(dtype), k_dim, v_dim), pages);
}

void hash_latent(Random& random, DType dtype) {
  constexpr int kHeads = 6, kRank = 48, kRope = 16, kPlain = 40;
  OneSequence sequence({.kv_heads = 1,
                        .k_dim = kRank + kRope,
                        .v_dim = kRank,
                        .dtype = dtype,
                        .values_in_keys = true});
  const auto matrices = numbers(random, kHeads * kRank * kPlain, dtype);
  const WeightView source{.format = WeightFormat::kDense,
                          .rows = kHeads * kRank,
                          .cols = kPlain,
                          .dtype = dtype,
                          .data = matrices.data()};
  const PackedLayout layout = packed_layout(source);
  std::vector<std::byte> packed(static_cast<size_t>(layout.bytes()));
  pack_weight(source, layout, {}, packed.data());
  const auto latent = numbers(random, kTokens * (kRank + kRope), dtype);
  const auto q = numbers(random, kTokens * kHeads * (kPlain + kRope), dtype);
  const auto norm = numbers(random, kRank, DType::kFloat32);
  const auto turning = frequencies(kRope / 2);
  std::vector<std::byte> q_out(static_cast<size_t>(kTokens * kHeads * (kRank + kRope)) *
                               size_of(dtype));
  cpu::latent_write({.batch = sequence.batch(),
                     .tokens = kTokens,
                     .latent = latent.data(),
                     .norm = norm.data(),
                     .eps = 1e-6f,
                     .q = q.data(),
                     .heads = kHeads,
                     .q_dim = kPlain + kRope,
                     .absorbed = {layout, packed.data()},
                     .rope = {.positions = positions().data(),
                              .inverse_frequencies = turning.data(),
                              .pairs = kRope / 2},
                     .q_out = q_out.data()});
  std::vector<std::byte> out(static_cast<size_t>(kTokens * kHeads * kRank) * size_of(dtype));
  cpu::paged_attention({.batch = sequence.batch(),
                        .q = q_out.data(),
                        .out = out.data(),
                        .dtype = dtype,
                        .q_heads = kHeads,
                        .options = {.scale = 0.02f}});
  print_hash(fmt::format("latent attention {}", name_of(dtype)), out);
}

void hash_sampling(Random& random, size_t vocab) {
  constexpr uint32_t kDraws = 50;
  std::vector<float> logits(vocab);
  for (auto& logit : logits) logit = random.number() * random.number();
  std::vector<int32_t> tokens;
  for (uint32_t i = 0; i < kDraws; ++i) {
    for (const RowSampling& s :
         {RowSampling{.temperature = 0.8f, .position = i},
          RowSampling{.temperature = 1.5f, .top_p = 0.9f, .position = i},
          RowSampling{.temperature = 1, .min_p = 0.05f, .top_k = 50, .position = i}})
      tokens.push_back(cpu::sample_row(logits, s));
  }
  std::vector<float> values(21);
  std::vector<int32_t> ids(21);
  tokens.push_back(0);
  cpu::write_logprobs(logits, 0, 20, {.values = values, .ids = ids, .rank = &tokens.back()});
  for (float value : values) tokens.push_back(std::bit_cast<int32_t>(value));
  const auto bytes = std::as_bytes(std::span(tokens));
  print_hash(fmt::format("sampling of {}", vocab), {bytes.begin(), bytes.end()});
}

void hash_elementary(Random& random) {
  constexpr std::array kNames = {"exp", "exp2", "tanh", "sigmoid", "softplus", "silu", "gelu"};
  std::vector<float> x, y;
  for (int i = 0; i < 20000; ++i) x.push_back(random.number() * (i % 2 == 0 ? 1.0f : 45.0f));
  y.resize(x.size());
  for (size_t f = 0; f < kNames.size(); ++f) {
    const auto kind = static_cast<cpu::Elementary>(f);
    if (kind == cpu::Elementary::kExp2)
      for (float& value : x) value = -std::abs(value);
    cpu::prepare_thread();
    cpu::kernels().elementary(kind, x.data(), static_cast<int64_t>(x.size()), y.data());
    const auto bytes = std::as_bytes(std::span(y));
    print_hash(kNames[f], {bytes.begin(), bytes.end()});
  }
}

void hash_kernels(Random& random) {
  hash_elementary(random);
  for (size_t vocab : {1000, 49152, 151936}) hash_sampling(random, vocab);
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    hash_gated_products(random, dtype);
    for (auto score : {ExpertScore::kSoftmax, ExpertScore::kSigmoid, ExpertScore::kSoftmaxOfChosen})
      hash_experts(random, dtype, score);
    hash_states(random, dtype, 64, 80);
    hash_states(random, dtype, 256, 48);
    for (KvFormat format : {KvFormat::kPlain, KvFormat::kInt8}) {
      hash_attention(random, dtype, format, 64, 64, 0, 0);
      hash_attention(random, dtype, format, 72, 40, 128, 50);
    }
    hash_latent(random, dtype);
  }
}

}  // namespace
}  // namespace octavo

int main() {
  octavo::Random random;
  const int quantised = octavo::hash_quantised_products(random);
  const int dense = octavo::hash_dense_products(random);
  const int lora = octavo::hash_lora_products(random);
  octavo::hash_kernels(random);
  const int attention = octavo::check_attention(std::getenv("OCTAVO_SLOW_TESTS") ? 10'000 : 300);
  return quantised + dense + lora + attention == 0 ? 0 : 1;
}

#include <memory>
#include <span>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/linear.h"
#include "kernels/reference/arithmetic/dense_product.h"
#include "kernels/reference/arithmetic/lora.h"
#include "product_hashes.h"

namespace octavo {
namespace {

constexpr int kLoraInputs = 200;
constexpr int kLoraOutputs = 37;
constexpr int kRanks[] = {16, 3, 40};

std::vector<float> widened(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> out(bytes.size() / size_of(dtype));
  cpu::load_floats(bytes.data(), dtype, static_cast<int64_t>(out.size()), out.data());
  return out;
}

// An adapter as a file has it.
struct Adapter {
  int rank;
  std::vector<std::byte> a;  // [rank, inputs]
  std::vector<std::byte> b;  // [outputs, rank]
};

// Adapters in slots. The view points into the vectors.
struct Adapters {
  Adapters(Random& random, DType dtype);
  Adapters(const Adapters&) = delete;
  Adapters& operator=(const Adapters&) = delete;

  std::vector<Adapter> files;
  std::vector<std::byte> a, b;
  LoraView view;
};

Adapters::Adapters(Random& random, DType dtype) {
  view.shape = {.slots = static_cast<int>(std::size(kRanks)),
                .max_rank = 40,
                .inputs = kLoraInputs,
                .outputs = kLoraOutputs,
                .dtype = dtype};
  a.resize(static_cast<size_t>(view.shape.slots * view.shape.a_bytes()));
  b.resize(static_cast<size_t>(view.shape.slots * view.shape.b_bytes()));
  view.a = a.data();
  view.b = b.data();
  for (size_t slot = 0; slot < std::size(kRanks); ++slot) {
    const auto rank = static_cast<size_t>(kRanks[slot]);
    view.slots.push_back({kRanks[slot], 0.3f});
    files.push_back({kRanks[slot], numbers(random, rank * kLoraInputs, dtype), {}});
    files.back().b = numbers(random, rank * kLoraOutputs, dtype);
    const PackedLayout layout = view.shape.a_layout(kRanks[slot]);
    pack_weight(
        {.rows = kRanks[slot], .cols = kLoraInputs, .dtype = dtype, .data = files.back().a.data()},
        layout, {}, a.data() + static_cast<int64_t>(slot) * view.shape.a_bytes());
    std::byte* strips =
        b.data() + static_cast<int64_t>(slot) * view.shape.b_bytes() + kLoraHeaderBytes;
    const size_t width = size_of(dtype);
    for (size_t n = 0; n < kLoraOutputs; ++n)
      for (size_t r = 0; r < rank; ++r)
        std::memcpy(strips + ((n / kStripRows * rank + r) * kStripRows + n % kStripRows) * width,
                    files.back().b.data() + (n * rank + r) * width, width);
  }
}

float inner_product(std::span<const std::byte> x, std::span<const std::byte> a, DType dtype) {
  if (dtype != DType::kBFloat16) return arithmetic::dot_f32(widened(x, dtype), widened(a, dtype));
  std::vector<uint16_t> x_bits(x.size() / 2), a_bits(a.size() / 2);
  std::memcpy(x_bits.data(), x.data(), x.size());
  std::memcpy(a_bits.data(), a.data(), a.size());
  return arithmetic::dot_bf16(x_bits, a_bits);
}

// The definition for one row.
void add_adapter(const Adapter& adapter, std::span<const std::byte> x, DType dtype, float scale,
                 std::span<float> outputs) {
  const size_t row_bytes = kLoraInputs * size_of(dtype);
  std::vector<float> inner;
  for (int r = 0; r < adapter.rank; ++r)
    inner.push_back(inner_product(
        x, std::span(adapter.a).subspan(static_cast<size_t>(r) * row_bytes, row_bytes), dtype));
  const std::vector<float> b = widened(adapter.b, dtype);
  for (size_t n = 0; n < outputs.size(); ++n)
    outputs[n] = arithmetic::add_lora(outputs[n], inner,
                                      std::span(b).subspan(n * inner.size(), inner.size()), scale);
}

// Returns 1 if a bit differs from the definition.
int hash_rows(Random& random, const Adapters& adapters, const PackedView& weight, int64_t rows) {
  const DType dtype = adapters.view.shape.dtype;
  const auto x = numbers(random, static_cast<size_t>(rows) * kLoraInputs, dtype);
  std::vector<int32_t> slots;
  for (int64_t row = 0; row < rows; ++row)
    slots.push_back(static_cast<int32_t>(random.bits() % 4) - 1);
  slots[0] = 0;
  std::vector<float> expected(static_cast<size_t>(rows) * kLoraOutputs), actual(expected.size());
  cpu::LinearArgs args;
  args.x = {.x = x.data(), .dtype = dtype, .rows = rows, .cols = kLoraInputs};
  args.parts[0].weight = weight;
  args.part_count = 1;
  args.out = expected.data();
  args.out_stride = kLoraOutputs;
  cpu::linear(args);
  const size_t row_bytes = kLoraInputs * size_of(dtype);
  for (size_t row = 0; row < slots.size(); ++row) {
    if (slots[row] == kNoLora) continue;
    const auto slot = static_cast<size_t>(slots[row]);
    add_adapter(adapters.files[slot], std::span(x).subspan(row * row_bytes, row_bytes), dtype,
                adapters.view.slots[slot].scale,
                std::span(expected).subspan(row * kLoraOutputs, kLoraOutputs));
  }
  args.out = actual.data();
  args.lora = std::make_shared<cpu::LoraArgs>(
      cpu::LoraArgs{std::make_shared<LoraPlan>(make_lora_plan(slots)), {adapters.view}});
  cpu::linear(args);
  const auto bytes = std::as_bytes(std::span(actual));
  const std::string name =
      fmt::format("lora {} {} rows {}", weight.layout.describe(), name_of(dtype), rows);
  print_hash(name, {bytes.begin(), bytes.end()});
  if (std::memcmp(actual.data(), expected.data(), bytes.size()) == 0) return 0;
  fmt::print(stderr, "{}: differs from the reference\n", name);
  return 1;
}

}  // namespace

int hash_lora_products(Random& random) {
  int different = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Adapters adapters(random, dtype);
    const auto numbers_of = numbers(random, size_t{kLoraOutputs} * kLoraInputs, dtype);
    const WeightView source{
        .rows = kLoraOutputs, .cols = kLoraInputs, .dtype = dtype, .data = numbers_of.data()};
    const PackedLayout layout = packed_layout(source);
    std::vector<std::byte> packed(static_cast<size_t>(layout.bytes()));
    pack_weight(source, layout, {}, packed.data());
    for (const int64_t rows : {1, 2, 5, 16, 33, 70})
      different += hash_rows(random, adapters, {layout, packed.data()}, rows);
  }
  return different;
}

}  // namespace octavo

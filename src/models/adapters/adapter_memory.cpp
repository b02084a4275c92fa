#include "models/adapters/adapter_memory.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/lora.h"

namespace octavo {
namespace {

LoraShape shape_of(const AdaptedProjection& projection, DType dtype, int slots, int max_rank) {
  return {.slots = slots,
          .max_rank = max_rank,
          .inputs = projection.inputs,
          .outputs = projection.outputs,
          .dtype = dtype};
}

}  // namespace

uint64_t adapter_bytes(const AdapterTargets& targets, DType dtype, int slots, int max_rank) {
  uint64_t bytes = 0;
  for (const AdaptedProjection& projection : targets.projections)
    bytes += static_cast<uint64_t>(shape_of(projection, dtype, slots, max_rank).bytes());
  return bytes;
}

uint64_t adapter_scratch_bytes(const AdapterTargets& targets, int tokens, int slots, int max_rank) {
  int widest = 0;
  for (const AdaptedProjection& projection : targets.projections)
    widest = std::max(widest, projection.inputs);
  return static_cast<uint64_t>(cpu::lora_scratch_bytes(tokens, widest, slots, max_rank));
}

AdapterMemory::AdapterMemory(AdapterTargets targets, DType dtype, int slots, int max_rank)
    : targets_(std::move(targets)), tied_slots_(static_cast<size_t>(slots)) {
  for (const AdaptedProjection& projection : targets_.projections)
    matrices_.push_back(make_lora_matrices(shape_of(projection, dtype, slots, max_rank)));
}

uint64_t AdapterMemory::bytes() const {
  uint64_t bytes = 0;
  for (const LoraMatrices& matrices : matrices_)
    bytes += static_cast<uint64_t>(matrices.shape.bytes());
  return bytes;
}

void AdapterMemory::write(int slot, const LoraWeights& weights) {
  for (LoraMatrices& matrices : matrices_) clear_lora(matrices, slot);
  tied_slots_[static_cast<size_t>(slot)] =
      std::ranges::any_of(weights.modules, &LoraModule::changes_head);
  for (const LoraModule& lora : weights.modules) {
    const AdapterModule& module = targets_.modules.at(lora.name);
    for (const AdapterModule::Part& part : module.parts) {
      write_lora(matrices_[static_cast<size_t>(part.projection)], slot,
                 {.rank = lora.rank,
                  .scale = lora.scale,
                  .dtype = weights.dtype,
                  .a = lora.a,
                  .b = lora.b,
                  .is_transposed = lora.is_transposed,
                  .output_order = part.order,
                  .file_outputs = module.outputs});
    }
  }
}

LoraOptions LoraStep::options(std::span<const int> projections) const {
  LoraOptions options{rows_, {}};
  for (const int index : projections)
    options.layers.push_back(index < 0 ? nullptr : &memory_.matrices(index));
  return options;
}

LoraOptions LoraStep::head(std::span<const int32_t> rows) const {
  std::vector<int32_t> slots;
  for (const int32_t row : rows) {
    const int32_t slot = rows_.plan().slots[static_cast<size_t>(row)];
    slots.push_back(slot != kNoLora && memory_.changes_head(slot) ? slot : kNoLora);
  }
  const int head = memory_.targets().head;
  return {LoraRows(slots), {head < 0 ? nullptr : &memory_.matrices(head)}};
}

}  // namespace octavo

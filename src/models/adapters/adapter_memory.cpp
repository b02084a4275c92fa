#include "models/adapters/adapter_memory.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/lora.h"

namespace octavo {
namespace {

LoraShape shape_of(const AdaptedProjection& projection, DType dtype, int slots, int max_rank) {
  return {.slots = slots * projection.experts,
          .max_rank = max_rank,
          .inputs = projection.inputs,
          .outputs = projection.outputs,
          .dtype = dtype};
}

// The part's own matrix, if the module is a stack of one per expert.
std::span<const std::byte> own_share(std::span<const std::byte> bytes, const AdapterModule& module,
                                     const AdapterModule::Part& part) {
  if (module.experts == 0) return bytes;
  const size_t share = bytes.size() / static_cast<size_t>(module.experts);
  return bytes.subspan(static_cast<size_t>(part.expert) * share, share);
}

}  // namespace

uint64_t adapter_bytes(const AdapterTargets& targets, DType dtype, int slots, int max_rank) {
  uint64_t bytes = 0;
  for (const AdaptedProjection& projection : targets.projections)
    bytes += static_cast<uint64_t>(shape_of(projection, dtype, slots, max_rank).bytes());
  return bytes;
}

uint64_t adapter_scratch_bytes(const AdapterTargets& targets, int tokens, int slots, int max_rank) {
  int64_t most = 0;
  for (const AdaptedProjection& projection : targets.projections)
    most = std::max(most, cpu::lora_scratch_bytes(int64_t{tokens} * projection.top_k,
                                                  projection.inputs, slots * projection.experts,
                                                  max_rank, projection.experts == 1));
  return static_cast<uint64_t>(most);
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
  for (size_t i = 0; i < matrices_.size(); ++i)
    for (int e = 0; e < targets_.projections[i].experts; ++e)
      clear_lora(matrices_[i], matrix_slot(static_cast<int>(i), slot, e));
  tied_slots_[static_cast<size_t>(slot)] =
      std::ranges::any_of(weights.modules, &LoraModule::changes_head);
  for (const LoraModule& lora : weights.modules) {
    const AdapterModule& module = targets_.modules.at(lora.name);
    for (const AdapterModule::Part& part : module.parts) {
      write_lora(matrices_[static_cast<size_t>(part.projection)],
                 matrix_slot(part.projection, slot, part.expert),
                 {.rank = lora.rank,
                  .scale = lora.scale,
                  .dtype = weights.dtype,
                  .a = own_share(lora.a, module, part),
                  .b = own_share(lora.b, module, part),
                  .is_transposed = lora.is_transposed,
                  .output_order = part.order,
                  .file_outputs = module.outputs});
    }
  }
}

int AdapterMemory::matrix_slot(int projection, int slot, int expert) const {
  return slot * targets_.projections[static_cast<size_t>(projection)].experts + expert;
}

std::optional<ExpertLora> LoraStep::experts(int layer) const {
  const LayerTargets& own = of(layer);
  if (own.expert_down < 0) return std::nullopt;
  return ExpertLora{rows_, &memory_.matrices(own.expert_gate), &memory_.matrices(own.expert_up),
                    &memory_.matrices(own.expert_down)};
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

#include "kernels/lora.h"

#include "base/error.h"
#include "kernels/runtime/kernel_path.h"

namespace octavo::reference {

mx::array add_lora(const mx::array& y, const mx::array& x, const LoraRows& rows,
                   const LoraMatrices& matrices) {
  count_launch("lora.reference");
  const LoraPlan& plan = rows.plan();
  OCTAVO_CHECK(plan.rows() * x.shape(-1) == static_cast<int64_t>(x.size()));
  mx::Shape column = x.shape();
  column.back() = 1;
  const mx::array slots(plan.slots.begin(), column, mx::int32);
  const mx::array wide = mx::astype(x, mx::float32);
  mx::array out = y;
  for (const LoraGroup& group : plan.groups) {
    const LoraSlot& slot = matrices.slots[static_cast<size_t>(group.slot)];
    if (slot.rank == 0) continue;
    const mx::array inner = mx::matmul(wide, mx::transpose(lora_a(matrices, group.slot)));
    const mx::array outer = mx::matmul(inner, mx::transpose(lora_b(matrices, group.slot)));
    const mx::array changed = mx::add(out, mx::multiply(outer, mx::array(slot.scale)));
    out = mx::where(mx::equal(slots, mx::array(group.slot)), changed, out);
  }
  return out;
}

mx::array add_expert_lora(const mx::array& y, const mx::array& x, const mx::array& ids, int experts,
                          const LoraRows& rows, const LoraMatrices& matrices) {
  count_launch("lora.reference");
  const LoraPlan& plan = rows.plan();
  const mx::array slots(plan.slots.begin(), {y.shape(0), 1}, mx::int32);
  const mx::array wide = mx::astype(x, mx::float32);
  mx::array out = y;
  for (const LoraGroup& group : plan.groups) {
    for (int e = 0; e < experts; ++e) {
      const int index = group.slot * experts + e;
      const LoraSlot& slot = matrices.slots[static_cast<size_t>(index)];
      if (slot.rank == 0) continue;
      const mx::array inner = mx::matmul(wide, mx::transpose(lora_a(matrices, index)));
      const mx::array outer = mx::matmul(inner, mx::transpose(lora_b(matrices, index)));
      const mx::array changed = mx::add(out, mx::multiply(outer, mx::array(slot.scale)));
      const mx::array own =
          mx::logical_and(mx::equal(slots, mx::array(group.slot)), mx::equal(ids, mx::array(e)));
      out = mx::where(mx::expand_dims(own, -1), changed, out);
    }
  }
  return out;
}

mx::array add_embedding_lora(const mx::array& y, const mx::array& tokens, const LoraRows& rows,
                             const LoraMatrices& matrices) {
  count_launch("lora.reference");
  const LoraPlan& plan = rows.plan();
  const mx::array slots(plan.slots.begin(), {y.shape(0), 1}, mx::int32);
  mx::array out = y;
  for (const LoraGroup& group : plan.groups) {
    const LoraSlot& slot = matrices.slots[static_cast<size_t>(group.slot)];
    if (slot.rank == 0) continue;
    const mx::array own = mx::take(lora_b(matrices, group.slot), tokens, 0);
    const mx::array sums = mx::matmul(own, lora_a(matrices, group.slot));
    const mx::array changed = mx::add(out, mx::multiply(sums, mx::array(slot.scale)));
    out = mx::where(mx::equal(slots, mx::array(group.slot)), changed, out);
  }
  return out;
}

}  // namespace octavo::reference

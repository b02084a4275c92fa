#include "kernels/metal/weights.h"

#include "base/error.h"
#include "kernels/metal/weight_params.h"

namespace octavo::metal {
namespace {

static_assert(kUnitRows == kStripRows && kUnitInputs == kUnitCols);
static_assert(kScalePairF32 == static_cast<int>(ScaleKind::kPairF32));
static_assert(kScalePairF16 == static_cast<int>(ScaleKind::kPairF16));
static_assert(kScalePairBF16 == static_cast<int>(ScaleKind::kPairBF16));
static_assert(kScaleF16 == static_cast<int>(ScaleKind::kF16));
static_assert(kScaleSuper == static_cast<int>(ScaleKind::kSuper));
static_assert(kScaleSuperSigned == static_cast<int>(ScaleKind::kSuperSigned));
static_assert(kScaleE8M0 == static_cast<int>(ScaleKind::kE8M0));
static_assert(kScaleSuperNibbles == static_cast<int>(ScaleKind::kSuperNibbles));
static_assert(kTableNone == static_cast<int>(CodeTable::kNone));
static_assert(kTableE2M1 == static_cast<int>(CodeTable::kE2M1));
static_assert(kTableIQ4 == static_cast<int>(CodeTable::kIQ4));
static_assert(kTableIQ3_S == static_cast<int>(CodeTable::kIQ3_S));
static_assert(kTableIQ3_XXS == static_cast<int>(CodeTable::kIQ3_XXS));
static_assert(kTableIQ2 == static_cast<int>(CodeTable::kIQ2));

int dense_type(DType dtype) {
  return dtype == DType::kFloat32   ? kDenseFloat
         : dtype == DType::kFloat16 ? kDenseHalf
                                    : kDenseBfloat;
}

// Whether weights.msl computes the same places in a strip as PackedLayout.
bool has_same_places(const PackedLayout& layout) {
  const auto kind = static_cast<int>(layout.scale_kind);
  return block_inputs(kind, layout.group_size) == layout.block_cols() &&
         block_scale_bytes(kind, layout.group_size) == layout.scale_bytes() &&
         unit_bytes(layout.bits) == layout.unit_bytes();
}

}  // namespace

void set_format(Launch& launch, const PackedLayout& layout) {
  const bool is_dense = layout.bits == 0;
  OCTAVO_CHECK(is_dense || has_same_places(layout));
  launch.constant("kBits", layout.bits)
      .constant("kDenseType", is_dense ? dense_type(layout.dtype) : kDenseFloat)
      .constant("kScaleKind", static_cast<int>(layout.scale_kind))
      .constant("kGroupSize", is_dense ? 1 : layout.group_size)
      .constant("kZero", layout.zero)
      .constant("kTable", static_cast<int>(layout.table));
}

bool have_one_format(const PackedLayout& a, const PackedLayout& b) {
  return a.bits == b.bits && (a.bits != 0 || a.dtype == b.dtype) && a.scale_kind == b.scale_kind &&
         a.group_size == b.group_size && a.zero == b.zero && a.table == b.table;
}

}  // namespace octavo::metal

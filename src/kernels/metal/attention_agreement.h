// attention_agreement.h (metal) - compares the two attention kernels on this device.
#pragma once

#include "kernels/types/page_geometry.h"

namespace octavo::metal {

// Whether a decode row by decode_attention has the bits of the same row in a prompt by
// paged_attention, on random numbers in plain pages of this geometry. If not, call
// set_vector_decode(false). Runs on the default device. One thread, before any other attention.
bool attention_kernels_agree(PageGeometry geometry, int q_heads);

}  // namespace octavo::metal

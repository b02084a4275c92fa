// gated_delta.h (metal) - dispatch of the gated delta rule.
#pragma once

#include <vector>

#include "kernels/cpu/delta_job.h"
#include "kernels/metal/encoder.h"
#include "kernels/types/state_geometry.h"

namespace octavo::metal {

// inputs: state_inputs(), qkv, gates, a_log, dt_bias, norm. outputs: out, and the pages' own
// buffer; both allocated. job: with what is no address.
void gated_delta(const StateGeometry& geometry, const cpu::DeltaJob& job,
                 const std::vector<mx::array>& inputs, const std::vector<mx::array>& outputs,
                 Encoder& encoder);

}  // namespace octavo::metal

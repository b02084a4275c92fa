// find_mtp.h - finds a checkpoint's multi-token prediction layer. No MLX.
#pragma once

#include "models/config.h"
#include "models/decoder_plan.h"
#include "models/format/checkpoint.h"

namespace octavo {

// The layer as Qwen3-Next and later ("mtp.") or DeepSeek V3 (a layer after the last one) name it.
// `plan` has the names of the checkpoint. Throws SetupError if there is none, or more than one.
MtpPlan find_mtp(const Config& config, const DecoderPlan& plan, const Checkpoint& checkpoint);

}  // namespace octavo

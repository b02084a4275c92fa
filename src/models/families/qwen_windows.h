// qwen_windows.h - the keys for sliding windows of the Qwen families and SmolLM3. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// No windows without use_sliding_window. With it, sliding_window applies to the layers that
// layer_types calls "sliding_attention", or without layer_types to those from max_window_layers on.
void set_qwen_windows(const Config& config, DecoderPlan& plan);

// For families without windows: throws SetupError if the config has them.
void refuse_windows(const Config& config);

}  // namespace octavo

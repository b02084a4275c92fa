// encoder_like.h - reads the config keys that encoders share; family files modify the result. No MLX.
#pragma once

#include <string>

#include "models/decoder_plan.h"

namespace octavo {

// Attention over the whole prompt without rope, layer norms, and the sizes of every layer. `activation`:
// the config key that names that of the MLP.
DecoderPlan plan_encoder_frame(const Config& config, const char* family, const char* activation);

// Norms with bias after each sum, an MLP without a gate, biases in every layer, and tables of positions
// and token types: BERT. The prefix of the tensors' names is `prefix`.
DecoderPlan plan_bert_like(const Config& config, const char* family, const char* prefix);

// Throws unless the config is that of an encoder.
void refuse_decoder(const Config& config);

}  // namespace octavo

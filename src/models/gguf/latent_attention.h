// latent_attention.h - shared by the GGUF architectures with latent attention (MLA). No MLX.
#pragma once

#include "models/gguf/architecture.h"

namespace octavo {

// Keys and names of latent attention; the architectures add to it and read the sizes of the heads.
GgufArchitecture gguf_latent_attention();

}  // namespace octavo

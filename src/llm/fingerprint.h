// fingerprint.h - identifies a model and a build of Octavo.
#pragma once

#include <string>

#include "llm/llm.h"
#include "llm/model_settings.h"

namespace octavo {

// Names, sizes and samples of the model's files: enough to tell checkpoints apart without reading
// them whole.
std::string sample_of_model(const std::string& path);

// Identifies pages on disk: the model's files, including their modification times, and this build.
std::string page_source_fingerprint(const std::string& model_path);

// Changes whenever output bits may change: the model's files, a merged adapter, data types, the
// arithmetic. The same on
// every processor: "fp_v1_0123456789ab".
std::string answer_fingerprint(const ModelSettings& settings, const Llm& llm,
                               const std::string& version);

}  // namespace octavo

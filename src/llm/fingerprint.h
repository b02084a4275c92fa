// fingerprint.h - what tells one model, and one build of octavo, from another.
#pragma once

#include <string>

#include "llm/llm.h"
#include "llm/model_settings.h"

namespace octavo {

// Names, lengths and a few pieces of the model's files: enough to tell one checkpoint from another
// without reading it all.
std::string sample_of_model(const std::string& path);

// What decides pages that outlive the process: the model's files, times of change included, and
// this very program.
std::string page_source_fingerprint(const std::string& model_path);

// Changes when an answer's bits may: the model's files, types, kernels, octavo's version.
std::string answer_fingerprint(const ModelSettings& settings, const Llm& llm,
                               const std::string& version);

}  // namespace octavo

// fingerprint.h - what tells one model, and one build of octavo, from another.
#pragma once

#include <string>

namespace octavo {

// Names, lengths and a few pieces of the model's files: enough to tell one checkpoint from another
// without reading it all.
std::string sample_of_model(const std::string& path);

// What decides pages that outlive the process: the model's files, times of change included, and
// this very program.
std::string page_source_fingerprint(const std::string& model_path);

}  // namespace octavo

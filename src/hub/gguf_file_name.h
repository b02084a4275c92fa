// gguf_file_name.h - parses the names of GGUF files: their quantisation, and which are pieces of
// one model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/model_file.h"

namespace octavo {

// Returns "Q4_K_M", "BF16" or "IQ2_XS", in upper case; empty if the name does not tell.
std::string quantization_of(std::string_view file_name);

// For messages: the tensor types that octavo loads.
inline constexpr const char* kLoadableTypes =
    "F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1, Q4_0, MXFP4, Q3_K, Q2_K, IQ4_NL, "
    "IQ4_XS, "
    "IQ3 and IQ2";

// Lower is better to have when nothing was asked for; negative: octavo cannot load it.
int quantization_rank(const std::string& quantization);

// One model: a single file, or all pieces of a split file.
struct GgufModel {
  std::string quantization;
  std::vector<ModelFile> files;  // the pieces in order
  size_t pieces = 1;             // the number of files it should have

  uint64_t bytes() const;
  bool is_complete() const { return files.size() == pieces; }
};

// Returns the models among `files`, sorted by name, without projectors and calibration data.
std::vector<GgufModel> gguf_models(const std::vector<ModelFile>& files);

}  // namespace octavo

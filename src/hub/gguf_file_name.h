// gguf_file_name.h - what the names of GGUF files say: how they are quantised, and which are
// pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/model_file.h"

namespace octavo {

// "Q4_K_M", "BF16", "IQ2_XS" in capital letters; empty: the name does not say.
std::string quantization_of(std::string_view file_name);

// For messages: the tensor types that octavo loads.
inline constexpr const char* kLoadableTypes =
    "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K";

// Lower is better to have when nothing was asked for; negative: octavo cannot load it.
int quantization_rank(const std::string& quantization);

// One model: a file, or all pieces of one.
struct GgufModel {
  std::string quantization;
  std::vector<ModelFile> files;  // the pieces in order
  size_t pieces = 1;             // how many files it should have

  uint64_t bytes() const;
  bool is_complete() const { return files.size() == pieces; }
};

// The models among `files`, in the order of their names; projectors and calibration data are none.
std::vector<GgufModel> gguf_models(const std::vector<ModelFile>& files);

}  // namespace octavo

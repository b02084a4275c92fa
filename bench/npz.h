// npz.h - writes arrays of float64 in NumPy's .npz format, without compression. No MLX.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace octavo::bench {

struct NpzArray {
  std::string name;            // without ".npy"
  std::vector<size_t> shape;   // at least one dimension
  std::vector<double> values;  // the last dimension varies fastest
};

// The bytes of the file: a ZIP archive with one .npy file (version 1.0) per array.
std::string npz_bytes(std::span<const NpzArray> arrays);

// Throws SetupError if the file cannot be written.
void write_npz(const std::filesystem::path& path, std::span<const NpzArray> arrays);

}  // namespace octavo::bench

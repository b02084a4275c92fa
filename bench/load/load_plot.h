// load_plot.h - a load run over time, as a picture. No MLX.
#pragma once

#include <filesystem>
#include <string>

#include "bench/load/load_run.h"

namespace octavo::bench {

// An SVG of two panels over the same time: the TTFT of each request where it was sent, with a cross
// for each that failed, and the output tokens of each second. Its colours follow the reader's light
// or dark setting.
std::string load_plot(const LoadResult& result);

// Throws SetupError when the file cannot be written.
void write_load_plot(const LoadResult& result, const std::filesystem::path& path);

}  // namespace octavo::bench

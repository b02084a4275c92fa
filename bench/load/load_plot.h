// load_plot.h - plots a load run over time. No MLX.
#pragma once

#include <filesystem>
#include <string>

#include "bench/load/load_run.h"

namespace octavo::bench {

// Returns an SVG with two panels: the TTFT of each request at the time it was sent, with a cross
// for each failed request, and the output tokens per second. Colours follow the viewer's light or
// dark setting.
std::string load_plot(const LoadResult& result);

// Throws SetupError if the file cannot be written.
void write_load_plot(const LoadResult& result, const std::filesystem::path& path);

}  // namespace octavo::bench

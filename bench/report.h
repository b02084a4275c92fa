// report.h - formats results as a table and as JSON. No MLX.
#pragma once

#include <span>
#include <string>

#include "bench/kernels.h"
#include "bench/machine.h"

namespace octavo::bench {

std::string machine_table(const MachineLimits& machine);
std::string kernel_table(std::span<const KernelResult> results);

// {"machine": {...}, "results": [...]}; rates are per second, in bytes and operations.
std::string report_json(const MachineLimits& machine, std::span<const KernelResult> results);

}  // namespace octavo::bench

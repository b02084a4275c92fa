// compile_pipelines.h (metal) - compiles pipelines before their first launch.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "kernels/metal/pipeline_key.h"

namespace octavo::metal {

// Called after each pipeline, by one thread at a time.
using CompileProgress = std::function<void(size_t done, size_t total)>;

// Compiles the pipelines that this process has not compiled yet. Throws the first error.
void compile_pipelines(std::span<const PipelineKey> keys, const CompileProgress& progress);

// Calls `compile` once per key, on `threads` threads including the caller's. After an error no
// further key is begun, and the error is thrown.
void compile_on_threads(std::span<const PipelineKey> keys, int threads,
                        const std::function<void(const PipelineKey&)>& compile,
                        const CompileProgress& progress);

}  // namespace octavo::metal

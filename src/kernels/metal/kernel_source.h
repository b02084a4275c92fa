// kernel_source.h (metal) - the source text and signatures of the Metal kernels. No MLX.
//
// tools/embed_metal.py generates the table from kernels/metal/shaders/*.metal at build time.
// Kernels are templates: the library that MLX compiles at run time is the file plus one
// instantiation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::metal {

enum class ParameterKind : uint8_t {
  kInput,        // const device T*
  kOutput,       // device T*: written, possibly also read
  kBytes,        // constant T&: a struct from the host
  kThreadgroup,  // threadgroup T*
};

struct Parameter {
  std::string_view name;
  ParameterKind kind;
  int index;              // [[buffer(index)]] or [[threadgroup(index)]]
  std::string_view type;  // without qualifiers: "T", "int", "AttentionParams"
  bool optional;          // present only for some function constant values
};

struct FunctionConstant {
  std::string_view name;
  int index;
  std::string_view type;  // "bool", "int" or "float"
};

struct KernelSource {
  std::string_view name;                                 // of the function
  std::span<const std::string_view> template_arguments;  // their names, in order
  std::span<const Parameter> parameters;                 // in declaration order
  std::span<const FunctionConstant> constants;           // of the file
  std::string_view text;                                 // the file with its includes expanded
};

std::span<const KernelSource> kernel_sources();

// Aborts if no kernel has that name.
const KernelSource& find_kernel(std::string_view name);

// "paged_attention_half_128_128": the instance's name in its library.
std::string instance_name(std::string_view kernel, std::span<const std::string> types);

// The source to compile for the instance.
std::string instance_text(const KernelSource& kernel, std::span<const std::string> types);

}  // namespace octavo::metal

// kernel_source.h (metal) - our Metal kernels as text, with what their signatures say. No MLX.
//
// tools/embed_metal.py writes the table from kernels/metal/*.metal at build time. A kernel is a
// template: the library that MLX compiles at run time is its file and one instantiation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::metal {

enum class ParameterKind : uint8_t {
  kInput,        // const device T*
  kOutput,       // device T*: written, and perhaps read
  kBytes,        // constant T&: a struct of the host's
  kThreadgroup,  // threadgroup T*
};

struct Parameter {
  std::string_view name;
  ParameterKind kind;
  int index;              // [[buffer(index)]] or [[threadgroup(index)]]
  std::string_view type;  // without qualifiers: "T", "int", "AttentionParams"
  bool optional;          // exists only with some function constant
};

struct FunctionConstant {
  std::string_view name;
  int index;
  std::string_view type;  // "bool", "int" or "float"
};

struct KernelSource {
  std::string_view name;                                 // of the function
  std::span<const std::string_view> template_arguments;  // their names, in order
  std::span<const Parameter> parameters;                 // as the function lists them
  std::span<const FunctionConstant> constants;           // of the file
  std::string_view text;                                 // the file, its includes put in
};

std::span<const KernelSource> kernel_sources();

// Our own mistake if there is none of that name.
const KernelSource& find_kernel(std::string_view name);

// "paged_attention_half_128_128": the instance's name in its library.
std::string instance_name(std::string_view kernel, std::span<const std::string> types);

// What is compiled for it.
std::string instance_text(const KernelSource& kernel, std::span<const std::string> types);

}  // namespace octavo::metal

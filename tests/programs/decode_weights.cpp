// decode_weights FORMAT COLUMNS - packs a matrix of GGUF blocks as the loader does and writes the numbers
// that it stands for, so that Python can compare them with llama.cpp's.
//
// stdin: whole rows of blocks; stdout: float32
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/testing/quantised_formats.h"
#include "kernels/weights/packed_weight.h"

namespace octavo {
namespace {

WeightFormat format_of(const std::string& name) {
  for (const WeightFormat format : gguf_formats()) {
    if (name_of(format) == name) return format;
  }
  throw SetupError("unknown format " + name);
}

void decode(const std::string& format, int64_t columns) {
  const std::string blocks{std::istreambuf_iterator<char>(std::cin), {}};
  WeightView source{.format = format_of(format), .cols = columns};
  source.rows = static_cast<int64_t>(blocks.size()) / source.row_bytes();
  source.data = reinterpret_cast<const std::byte*>(blocks.data());
  const PackedLayout layout = packed_layout(source);
  std::vector<std::byte> packed(static_cast<size_t>(layout.bytes()));
  pack_weight(source, layout, {}, packed.data());
  std::vector<float> numbers(static_cast<size_t>(columns));
  for (int64_t row = 0; row < source.rows; ++row) {
    unpack_row({layout, packed.data()}, row, numbers.data());
    std::cout.write(reinterpret_cast<const char*>(numbers.data()),
                    columns * int64_t{sizeof(float)});
  }
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  octavo::decode(argv[1], std::stoll(argv[2]));
}

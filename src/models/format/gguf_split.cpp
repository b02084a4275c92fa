#include "models/format/gguf_split.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>

#include "base/error.h"

namespace octavo {
namespace {

struct PieceName {
  std::string stem;  // the part before "-00001-of-00003.gguf"
  size_t count;
};

std::optional<PieceName> parse_piece_name(const std::string& name) {
  constexpr std::string_view kPattern = "-ddddd-of-ddddd.gguf";
  if (name.size() <= kPattern.size()) return std::nullopt;
  const std::string tail = name.substr(name.size() - kPattern.size());
  for (size_t i = 0; i < tail.size(); ++i) {
    const bool digit = tail[i] >= '0' && tail[i] <= '9';
    if (kPattern[i] == 'd' ? !digit : tail[i] != kPattern[i]) return std::nullopt;
  }
  const size_t index = std::strtoul(tail.c_str() + 1, nullptr, 10);
  const size_t count = std::strtoul(tail.c_str() + 10, nullptr, 10);
  if (index < 1 || index > count) return std::nullopt;
  return PieceName{.stem = name.substr(0, name.size() - tail.size()), .count = count};
}

}  // namespace

std::vector<std::filesystem::path> gguf_pieces(const std::filesystem::path& file) {
  const auto name = parse_piece_name(file.filename().string());
  if (!name) return {file};
  std::error_code error;  // an inaccessible file counts as missing
  std::vector<std::filesystem::path> pieces;
  for (size_t i = 1; i <= name->count; ++i) {
    pieces.push_back(file.parent_path() /
                     fmt::format("{}-{:05}-of-{:05}.gguf", name->stem, i, name->count));
    if (!std::filesystem::exists(pieces.back(), error)) {
      throw SetupError(
          fmt::format("{}: piece {} of {} of this model is missing: download it into this folder",
                      pieces.back().string(), i, name->count));
    }
  }
  return pieces;
}

void check_gguf_piece(const Gguf& metadata, size_t index, size_t count) {
  const uint64_t stated_count = metadata.find_u64("split.count").value_or(1);
  const uint64_t stated_index = metadata.find_u64("split.no").value_or(0);
  if (stated_count == count && stated_index == index) return;
  if (stated_count <= 1 && count == 1) return;
  throw SetupError(fmt::format(
      "{}: the file says it is piece {} of {}, but by its name it is piece {} of {}; restore "
      "the names of the pieces (name-00001-of-{:05}.gguf) or merge them",
      metadata.file_name(), stated_index + 1, stated_count, index + 1, count, stated_count));
}

}  // namespace octavo

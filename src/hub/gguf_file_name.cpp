#include "hub/gguf_file_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

namespace octavo {
namespace {

// Best first: small enough to be quick with little lost, then more bits, then none, then fewer than four.
constexpr std::array<std::string_view, 44> kLoadable = {
    "Q4_K_M",  "Q4_K_S",  "Q4_K_L", "Q4_K_XL", "Q4_K",  "Q5_K_M", "Q5_K_S", "Q5_K_L", "Q5_K_XL",
    "Q5_K",    "Q4_0",    "Q4_1",   "Q5_0",    "Q5_1",  "IQ4_XS", "IQ4_NL", "MXFP4",  "Q6_K",
    "Q6_K_L",  "Q6_K_XL", "Q8_0",   "Q8_K_XL", "BF16",  "F16",    "FP16",   "F32",    "FP32",
    "Q3_K_XL", "Q3_K_L",  "Q3_K_M", "Q3_K_S",  "Q3_K",  "IQ3_M",  "IQ3_S",  "IQ3_XS", "IQ3_XXS",
    "Q2_K_XL", "Q2_K_L",  "Q2_K",   "Q2_K_S",  "IQ2_M", "IQ2_S",  "IQ2_XS", "IQ2_XXS"};

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Also what octavo does not load: Q1, IQ1 and TQ types.
bool looks_quantized(std::string_view word) {
  const bool digit_second = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
  const bool digit_third = word.size() > 2 && word[2] >= '0' && word[2] <= '9';
  return (word.starts_with('Q') && digit_second) ||
         ((word.starts_with("IQ") || word.starts_with("TQ")) && digit_third);
}

struct Piece {
  std::string stem;
  size_t number;
  size_t count;
};

// "name-00001-of-00003.gguf".
std::optional<Piece> piece_of(std::string_view path) {
  constexpr size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  if (path.size() <= kTail) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail);
  const auto number = [&](size_t at) {
    size_t value = 0;
    const char* end = tail.data() + at + 5;
    const auto [rest, error] = std::from_chars(tail.data() + at, end, value);
    return error == std::errc() && rest == end ? value : 0;
  };
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return std::nullopt;
  const Piece piece{.stem = std::string(path.substr(0, path.size() - kTail)),
                    .number = number(1),
                    .count = number(10)};
  if (piece.number < 1 || piece.number > piece.count) return std::nullopt;
  return piece;
}

bool is_model(std::string_view path) {
  const std::string name = upper(base_name(path));
  return name.ends_with(".GGUF") && name.find("MMPROJ") == std::string::npos &&
         name.find("IMATRIX") == std::string::npos;
}

}  // namespace

std::string quantization_of(std::string_view file_name) {
  std::string name = upper(base_name(file_name));
  if (name.ends_with(".GGUF")) name.resize(name.size() - 5);
  // Words are separated by '-' and '.'; the last one that is a quantisation counts.
  std::string found;
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find_first_of("-.", begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    if (std::ranges::find(kLoadable, word) != kLoadable.end() || looks_quantized(word))
      found = word;
    for (const std::string_view type : {"MXFP4", "NVFP4"}) {
      if (word.starts_with(type)) found = type;
    }
    begin = end + 1;
  }
  return found;
}

int quantization_rank(const std::string& quantization) {
  if (quantization.empty())
    return static_cast<int>(kLoadable.size());  // unknown until the file is read
  const auto* found = std::ranges::find(kLoadable, quantization);
  return found == kLoadable.end() ? -1 : static_cast<int>(found - kLoadable.begin());
}

uint64_t GgufModel::bytes() const {
  uint64_t sum = 0;
  for (const ModelFile& file : files) sum += file.size;
  return sum;
}

std::vector<GgufModel> gguf_models(const std::vector<ModelFile>& files) {
  std::map<std::string, std::map<size_t, ModelFile>> pieces;
  std::map<std::string, size_t> counts;
  for (const ModelFile& file : files) {
    if (!is_model(file.path)) continue;
    const auto piece = piece_of(file.path);
    const std::string stem = piece ? piece->stem : file.path;
    pieces[stem][piece ? piece->number : 1] = file;
    counts[stem] = piece ? piece->count : 1;
  }
  std::vector<GgufModel> models;
  for (const auto& [stem, numbered] : pieces) {
    GgufModel model{.quantization = quantization_of(stem), .files = {}, .pieces = counts[stem]};
    for (const auto& [number, file] : numbered) model.files.push_back(file);
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace octavo

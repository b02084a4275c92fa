// secret_file.h - reads a secret that several processes have in common. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace octavo {

inline constexpr size_t kLeastSecretBytes = 16;

// The file's content without white space at its end. Throws SetupError that names `flag` if it
// cannot be read, is larger than 4 KiB, or is shorter than kLeastSecretBytes.
std::string read_secret_file(const std::filesystem::path& path, std::string_view flag);

// The same rules for a text; `name` says where it is from, as "--flag: FILE".
std::string checked_secret(std::string text, std::string_view name);

// 64 random hex digits.
std::string fresh_secret();

}  // namespace octavo

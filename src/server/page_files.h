// page_files.h - the playground's files, embedded by cmake/EmbedFiles.cmake.
#pragma once

#include <span>
#include <string_view>

namespace octavo::server {

struct PageFile {
  std::string_view name;  // "app.js", "vendor/marked/marked.esm.js"
  std::string_view content_type;
  std::string_view content;
};

std::span<const PageFile> page_files();

}  // namespace octavo::server

# Run by EmbedFiles.cmake: writes FILES, named relative to FOLDER, as C++ raw strings to OUTPUT.
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

set(entries "")
foreach(path IN LISTS FILES)
  file(RELATIVE_PATH name "${FOLDER}" "${path}")
  get_filename_component(ending "${path}" LAST_EXT)
  string(SUBSTRING "${ending}" 1 -1 ending)
  file(READ "${path}" content)
  string(APPEND entries "    PageFile{\"${name}\", \"${type_${ending}}\", R\"page(${content})page\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"server/page_files.h\"

#include <array>

namespace octavo::server {
namespace {

constexpr std::array kFiles = {
${entries}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace octavo::server
")

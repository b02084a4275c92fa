# Toolchain of the preset macos-cross: builds for arm64 macOS on Linux, to check that everything compiles and links. The result
# is inspected, not run. Use tools/cross_macos.sh, which installs the compiler in OCTAVO_MACOS_TOOLS first.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_VERSION 24.0)  # macOS 15
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_SYSROOT "" CACHE STRING "" FORCE)
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "" FORCE)

set(tools "$ENV{OCTAVO_MACOS_TOOLS}")
if(NOT EXISTS "${tools}/c++")
  message(FATAL_ERROR "OCTAVO_MACOS_TOOLS contains no compiler: run tools/cross_macos.sh instead")
endif()
set(CMAKE_C_COMPILER "${tools}/cc")
set(CMAKE_CXX_COMPILER "${tools}/c++")
set(CMAKE_AR "${tools}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${tools}/ranlib" CACHE FILEPATH "")
set(CMAKE_INSTALL_NAME_TOOL "${tools}/install_name_tool" CACHE FILEPATH "")

# Apple's headers come with the compiler, except for the declarations of two frameworks that metal-cpp refers to.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${CMAKE_CURRENT_LIST_DIR}/../tools/macos_stubs")

# Only the headers of other projects are used here; symbols from their libraries stay undefined.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-undefined,dynamic_lookup")
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)

# Toolchain of the preset macos-cross: arm64 macOS from Linux, to see that everything compiles and links there. What it makes
# is checked, not run. tools/cross_macos.sh puts the compiler into OCTAVO_MACOS_TOOLS first; use that script.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_VERSION 24.0)  # macOS 15
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_SYSROOT "" CACHE STRING "" FORCE)
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "" FORCE)

set(tools "$ENV{OCTAVO_MACOS_TOOLS}")
if(NOT EXISTS "${tools}/c++")
  message(FATAL_ERROR "OCTAVO_MACOS_TOOLS holds no compiler: run tools/cross_macos.sh instead")
endif()
set(CMAKE_C_COMPILER "${tools}/cc")
set(CMAKE_CXX_COMPILER "${tools}/c++")
set(CMAKE_AR "${tools}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${tools}/ranlib" CACHE FILEPATH "")
set(CMAKE_INSTALL_NAME_TOOL "${tools}/install_name_tool" CACHE FILEPATH "")

# Apple's headers come with the compiler, but for what metal-cpp mentions of two frameworks.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${CMAKE_CURRENT_LIST_DIR}/../tools/macos_stubs")

# Libraries of other projects are headers here; what they would bring is left open.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-undefined,dynamic_lookup")
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)

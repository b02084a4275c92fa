# Finds MLX in the project's virtual environment (or at MLX_ROOT) and refuses any version other than
# the pinned one, because its C++ interface changes between patch releases.
file(STRINGS "${CMAKE_SOURCE_DIR}/cmake/mlx_version.txt" OCTAVO_MLX_VERSION)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/cmake/mlx_version.txt")

if(NOT MLX_ROOT)
  set(octavo_python "${CMAKE_SOURCE_DIR}/.venv/bin/python")
  if(NOT EXISTS "${octavo_python}")
    message(FATAL_ERROR "No Python environment at .venv: run tools/bootstrap.sh first, "
      "or pass -DMLX_ROOT=<folder that contains share/cmake/MLX>.")
  endif()
  execute_process(COMMAND "${octavo_python}" -m mlx --cmake-dir
    OUTPUT_VARIABLE MLX_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

find_package(MLX CONFIG REQUIRED HINTS "${MLX_ROOT}")
if(NOT MLX_VERSION VERSION_EQUAL OCTAVO_MLX_VERSION)
  message(FATAL_ERROR "MLX ${MLX_VERSION} found at ${MLX_ROOT}, but octavo is built against "
    "${OCTAVO_MLX_VERSION} (cmake/mlx_version.txt): run tools/bootstrap.sh again.")
endif()
message(STATUS "MLX ${MLX_VERSION} at ${MLX_ROOT}")

# The macOS package refers to frameworks by paths of its build machine, so replace them. From these frameworks our code only calls
# objc_msgSend: the rest of metal-cpp is in MLX's library (tools/cross_macos.sh checks that; its compiler has no frameworks).
if(APPLE)
  set(octavo_frameworks "-framework Metal" "-framework Foundation")
  if(CMAKE_CROSSCOMPILING)
    set(octavo_frameworks "")
  endif()
  set_target_properties(mlx PROPERTIES INTERFACE_LINK_LIBRARIES "${octavo_frameworks}")
endif()

# Suppress warnings from MLX's headers.
get_target_property(octavo_mlx_includes mlx INTERFACE_INCLUDE_DIRECTORIES)
set_target_properties(mlx PROPERTIES
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${octavo_mlx_includes}")

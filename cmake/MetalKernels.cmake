# src/kernels/metal/shaders/*.metal are embedded in the binary as text, with a table of their signatures; MLX compiles them on
# the user's Mac. On other systems the same host code drives the tests' simulator.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)  # as tools/bootstrap.sh
file(GLOB metal_kernels CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/kernels/metal/shaders/*.metal")
file(GLOB metal_headers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/kernels/metal/shaders/*.msl" "${CMAKE_SOURCE_DIR}/src/kernels/metal/*.h")
set(metal_table "${CMAKE_BINARY_DIR}/generated/metal_kernels.cpp")
add_custom_command(
  OUTPUT "${metal_table}"
  COMMAND Python3::Interpreter "${CMAKE_SOURCE_DIR}/tools/embed_metal.py" "${metal_table}" ${metal_kernels}
  DEPENDS ${metal_kernels} ${metal_headers} "${CMAKE_SOURCE_DIR}/tools/embed_metal.py"
  COMMENT "Embedding the Metal kernels"
  VERBATIM)
target_sources(octavo_kernels PRIVATE "${metal_table}")

if(APPLE)
  set(other_encoder simulated)
else()
  set(other_encoder mlx)
endif()
set_source_files_properties("${CMAKE_SOURCE_DIR}/src/kernels/metal/encoder_${other_encoder}.cpp"
  "${CMAKE_SOURCE_DIR}/src/kernels/metal/concurrent_launches_${other_encoder}.cpp"
  PROPERTIES HEADER_FILE_ONLY ON)

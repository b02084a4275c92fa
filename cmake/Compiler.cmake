# octavo_flags: the compile and link flags of all our own targets.
add_library(octavo_flags INTERFACE)
target_compile_features(octavo_flags INTERFACE cxx_std_20)
target_compile_options(octavo_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Werror
  # A multiply and an add round twice unless the source uses fma: results must not depend on what
  # the optimiser fuses.
  -ffp-contract=off)

# gcc takes a type of an anonymous namespace for one of a header if the file it compiles includes the source.
if(CMAKE_UNITY_BUILD)
  target_compile_options(octavo_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# The layers are also linked into a shared library (src/capi), except in sanitized builds. Darwin code is always position-independent.
if(NOT OCTAVO_SANITIZE AND NOT APPLE)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  target_compile_options(octavo_flags INTERFACE -fno-semantic-interposition)
endif()

if(OCTAVO_SANITIZE)
  target_compile_definitions(octavo_flags INTERFACE OCTAVO_SANITIZED)
  target_compile_options(octavo_flags INTERFACE
    -fsanitize=${OCTAVO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(octavo_flags INTERFACE -fsanitize=${OCTAVO_SANITIZE})
  if(OCTAVO_SANITIZE MATCHES "thread")
    # The thread sanitizer does not model fences; Asio's locks order the same accesses.
    target_compile_definitions(octavo_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
if(OCTAVO_COVERAGE)
  target_compile_options(octavo_flags INTERFACE --coverage)
  target_link_options(octavo_flags INTERFACE --coverage)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# src/kernels/cpu/simd holds the kernels once; each isa_*.cpp compiles them for one instruction set.
# The flags stay with that file: no other code may use what the machine might not have.
function(octavo_isa_flags name)
  set_source_files_properties("${CMAKE_SOURCE_DIR}/src/kernels/cpu/simd/isa_${name}.cpp"
    PROPERTIES COMPILE_OPTIONS "${ARGN}")
endfunction()

option(OCTAVO_ALL_ISAS "OFF leaves out those whose source the others share: quicker to build" ON)
set(OCTAVO_KERNEL_LEVEL -O3 CACHE STRING "How far the kernels are optimised")
# gcc 12 takes the deliberately undefined lanes of its own AVX-512 headers for our mistake.
set(isa_common ${OCTAVO_KERNEL_LEVEL} -fno-math-errno -fno-trapping-math -Wno-uninitialized
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  -Wno-ignored-attributes -Wno-unused-function)
set(isa_avx2 ${isa_common} -mavx2 -mfma -mf16c)
set(isa_avx512 ${isa_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(absent neon)
  octavo_isa_flags(scalar ${isa_common})
  octavo_isa_flags(avx2 ${isa_avx2})
  if(OCTAVO_ALL_ISAS)
    octavo_isa_flags(avx512 ${isa_avx512})
    octavo_isa_flags(avx512bf16 ${isa_avx512} -mavx512bf16)
  else()
    list(APPEND absent avx512 avx512bf16)
    set_source_files_properties("${CMAKE_SOURCE_DIR}/src/kernels/cpu/isa.cpp"
      PROPERTIES COMPILE_DEFINITIONS OCTAVO_FEWER_ISAS)
  endif()
  octavo_isa_flags(amx ${isa_avx512} -mavx512bf16 -mamx-tile -mamx-bf16)
else()
  set(absent avx2 avx512 avx512bf16 amx)
  octavo_isa_flags(scalar ${isa_common})
  octavo_isa_flags(neon ${isa_common})
endif()
foreach(name IN LISTS absent)
  set_source_files_properties("${CMAKE_SOURCE_DIR}/src/kernels/cpu/simd/isa_${name}.cpp"
    PROPERTIES HEADER_FILE_ONLY ON)
endforeach()

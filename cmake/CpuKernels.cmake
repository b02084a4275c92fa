# The source files of src/kernels/cpu/simd, one per kernel family, are compiled once per instruction set.
# A set's compiler flags stay with its objects: no other code may use instructions the machine might lack.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(isas_here scalar avx2 avx512 avx512bf16 amx)
else()
  set(isas_here scalar neon)
endif()
set(OCTAVO_ISAS "${isas_here}" CACHE STRING
  "Instruction sets to build CPU kernels for; sets of other architectures are ignored")
set(OCTAVO_KERNEL_LEVEL -O3 CACHE STRING "Optimisation level of the CPU kernels")

# gcc 12 warns about the deliberately undefined lanes of its own AVX-512 headers. Variable tracking takes a third of
# a sanitized build's compile time, and its tables overflow.
set(isa_common ${OCTAVO_KERNEL_LEVEL} -fno-math-errno -fno-trapping-math $<$<CXX_COMPILER_ID:GNU>:-fno-var-tracking>)
# Linked after octavo_flags, because the last flag holds. A family's source does not use every function of the headers.
add_library(octavo_kernel_flags INTERFACE)
target_compile_options(octavo_kernel_flags INTERFACE -Wno-uninitialized -Wno-ignored-attributes -Wno-unused-function
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# What these checks find, the address sanitizer finds too; with them linear.cpp takes more than five minutes to compile, not 100 s.
if(OCTAVO_SANITIZE MATCHES "address,undefined")
  target_compile_options(octavo_kernel_flags INTERFACE -fno-sanitize=null,pointer-overflow,object-size)
endif()
set(isa_scalar_flags ${isa_common})
set(isa_neon_flags ${isa_common})
set(isa_avx2_flags ${isa_common} -mavx2 -mfma -mf16c)
set(isa_avx512_flags ${isa_avx2_flags} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
set(isa_avx512bf16_flags ${isa_avx512_flags} -mavx512bf16 -mavx512vnni)
set(isa_amx_flags ${isa_avx512bf16_flags} -mamx-tile -mamx-bf16)
# What the sources may use besides plain C++: OCTAVO_SIMD_<extension>.
set(isa_scalar_extensions)
set(isa_neon_extensions NEON)
set(isa_avx2_extensions AVX2)
set(isa_avx512_extensions AVX512)
set(isa_avx512bf16_extensions AVX512 BF16)
set(isa_amx_extensions AVX512 BF16 AMX)

file(GLOB family_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/kernels/cpu/simd/*.cpp")
set(isa_definitions)
foreach(isa IN LISTS OCTAVO_ISAS)
  if(NOT DEFINED isa_${isa}_flags)
    message(FATAL_ERROR "OCTAVO_ISAS: unknown instruction set '${isa}'")
  endif()
  if(NOT isa IN_LIST isas_here)
    continue()
  endif()
  add_library(octavo_kernels_${isa} OBJECT ${family_sources})
  target_include_directories(octavo_kernels_${isa} PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_compile_options(octavo_kernels_${isa} PRIVATE ${isa_${isa}_flags})
  target_compile_definitions(octavo_kernels_${isa} PRIVATE OCTAVO_SIMD_NAMESPACE=${isa})
  foreach(extension IN LISTS isa_${isa}_extensions)
    target_compile_definitions(octavo_kernels_${isa} PRIVATE OCTAVO_SIMD_${extension})
  endforeach()
  target_link_libraries(octavo_kernels_${isa} PRIVATE octavo_flags octavo_kernel_flags)
  target_sources(octavo_kernels PRIVATE $<TARGET_OBJECTS:octavo_kernels_${isa}>)
  string(TOUPPER ${isa} upper)
  list(APPEND isa_definitions OCTAVO_WITH_${upper})
endforeach()
if(NOT isa_definitions)
  message(FATAL_ERROR "OCTAVO_ISAS=${OCTAVO_ISAS}: no set of this architecture; choose from ${isas_here}")
endif()
set_source_files_properties("${CMAKE_SOURCE_DIR}/src/kernels/cpu/isa.cpp"
  PROPERTIES COMPILE_DEFINITIONS "${isa_definitions}")

# Toolchain of the preset arm64-cross: builds for arm64 Linux on x86-64, with Debian's cross compiler. Use tools/test_neon_models.sh,
# which installs it and runs the result under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Only the headers of other projects are used here. The Rust library is not built: dump_logits links these of its functions, and never
# calls them.
string(JOIN " " CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--defsym=octavo_sha256=main -Wl,--defsym=octavo_image_decode=main
       -Wl,--defsym=octavo_text_free=main)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)

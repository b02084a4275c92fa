#include "kernels/cpu/isa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "kernels/cpu/kernel_table.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <xmmintrin.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace octavo::cpu {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"scalar", "neon",        "avx2",
                                                    "avx512", "avx512-bf16", "amx"};

#ifdef __x86_64__
// Linux grants tile state on request, for the whole process and all later threads.
bool tiles_permitted() {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  return (d & kBf16) != 0 && (d & kTile) != 0 && tiles_permitted();
}
#endif

// The control register of float arithmetic, without flags of past exceptions.
#ifdef __x86_64__
constexpr unsigned kExceptionFlags = 0x3f;
constexpr unsigned kFloatState = 0x9fc0;  // exceptions masked, flush to zero, denormals are zero
unsigned float_state() { return _mm_getcsr() & ~kExceptionFlags; }
void write_float_state(unsigned state) { _mm_setcsr(state); }
#elif defined(__aarch64__)
constexpr uint64_t kFloatState = uint64_t{1} << 24;  // FZ
uint64_t float_state() {
  uint64_t state = 0;
  asm volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
void write_float_state(uint64_t state) { asm volatile("msr fpcr, %0" ::"r"(state)); }
#else
#error "the kernels need denormals to be flushed to zero: add this architecture's float state"
#endif

// The sets of this machine, slowest first. Every x86 set includes the ones before it.
std::vector<Isa> supported_by_machine() {
  std::vector<Isa> found = {Isa::kScalar};
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c"))
    return found;
  found.push_back(Isa::kAvx2);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return found;
  found.push_back(Isa::kAvx512);
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return found;
  found.push_back(Isa::kAvx512Bf16);
  if (has_amx()) found.push_back(Isa::kAmx);
#elif defined(__aarch64__)
  found.push_back(Isa::kNeon);
#endif
  return found;
}

// The table of a set, filled on first use; null if the build leaves the set out (OCTAVO_ISAS).
// It is built here, not by the set's own files, whose inline functions may need the set's
// instructions.
template <void (*Fill)(KernelTable&)>
const KernelTable* filled_table() {
  static const KernelTable table = [] {
    KernelTable empty;
    Fill(empty);
    return empty;
  }();
  return &table;
}

const KernelTable* find_table(Isa isa) {
  switch (isa) {
#ifdef OCTAVO_WITH_SCALAR
    case Isa::kScalar:
      return filled_table<scalar::fill_table>();
#endif
#ifdef OCTAVO_WITH_NEON
    case Isa::kNeon:
      return filled_table<neon::fill_table>();
#endif
#ifdef OCTAVO_WITH_AVX2
    case Isa::kAvx2:
      return filled_table<avx2::fill_table>();
#endif
#ifdef OCTAVO_WITH_AVX512
    case Isa::kAvx512:
      return filled_table<avx512::fill_table>();
#endif
#ifdef OCTAVO_WITH_AVX512BF16
    case Isa::kAvx512Bf16:
      return filled_table<avx512bf16::fill_table>();
#endif
#ifdef OCTAVO_WITH_AMX
    case Isa::kAmx:
      return filled_table<amx::fill_table>();
#endif
    default:
      return nullptr;
  }
}

std::vector<Isa> detect() {
  std::vector<Isa> found = supported_by_machine();
  std::erase_if(found, [](Isa isa) { return find_table(isa) == nullptr; });
  if (found.empty())
    throw SetupError("this build has no kernels for this machine: add \"scalar\" to OCTAVO_ISAS");
  return found;
}

bool available(Isa isa) {
  const auto& all = available_isas();
  return std::find(all.begin(), all.end(), isa) != all.end();
}

Isa choose() {
  const char* wanted = std::getenv("OCTAVO_ISA");
  if (wanted == nullptr || *wanted == '\0') return available_isas().back();
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == wanted && available(static_cast<Isa>(i))) return static_cast<Isa>(i);
  }
  std::vector<std::string_view> names;
  for (Isa isa : available_isas()) names.push_back(name_of(isa));
  throw SetupError(
      fmt::format("OCTAVO_ISA={}: this machine has {}", wanted, fmt::join(names, ", ")));
}

std::atomic<Isa>& chosen() {
  static std::atomic<Isa> isa = choose();
  return isa;
}

}  // namespace

std::string_view name_of(Isa isa) { return kNames.at(static_cast<size_t>(isa)); }

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

Isa active_isa() { return chosen().load(std::memory_order_relaxed); }

void use_isa(Isa isa) {
  OCTAVO_CHECK(available(isa));
  chosen() = isa;
}

bool has_float_state() { return float_state() == kFloatState; }

void set_float_state() {
  if (!has_float_state()) write_float_state(kFloatState);
}

void prepare_thread() {
  set_float_state();
  if (const auto configure = kernels().configure_tiles) configure();
}

const KernelTable& kernels_of(Isa isa) {
  const KernelTable* table = find_table(isa);
  OCTAVO_CHECK(table != nullptr);
  return *table;
}

const KernelTable& kernels() { return kernels_of(active_isa()); }

}  // namespace octavo::cpu

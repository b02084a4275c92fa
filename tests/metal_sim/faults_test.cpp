// Each kind of fault that the simulator detects, in a kernel that has it, with the message.
#include <gmock/gmock.h>

#include "metal_sim/text_kernel.h"

namespace octavo::metal_sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// 64 threads and one output of 64 floats.
std::string fault_of(const std::string& body, metal::Size3 groups = {1}, size_t floats = 64,
                     MachineOptions options = {}) {
  std::vector<float> out(floats);
  return TextKernel(
             "[[kernel]] void k(device float* out [[buffer(0)]], uint t "
             "[[thread_index_in_threadgroup]],\n"
             "  uint group [[threadgroup_position_in_grid]], uint lane "
             "[[thread_index_in_simdgroup]]) {\n" +
             body + "\n}")
      .output("out", out)
      .grid(groups, {64})
      .fault(options);
}

TEST(MetalFaults, ACorrectKernelHasNone) {
  for (ThreadOrder order : {ThreadOrder::kForward, ThreadOrder::kBackward, ThreadOrder::kShuffled})
    EXPECT_EQ(
        fault_of(
            "threadgroup float s[64]; s[t] = t; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
            "out[t] = s[63 - t];",
            {1}, 64, {.order = order}),
        "");
}

TEST(MetalFaults, TheMessageNamesKernelPlaceGroupAndThread) {
  EXPECT_EQ(fault_of("if (group == 2 && t == 37)\n  out[64] = 1;", {3}),
            "Metal kernel k: k.metal:6: out-of-bounds device write: 4 bytes at byte 256 of 'out', "
            "which has 256 "
            "[threadgroup (2, 0, 0), thread 37]\n    out[64] = 1;");
}

TEST(MetalFaults, DeviceAccessOutOfBounds) {
  EXPECT_THAT(fault_of("out[t] = out[int(t) - 1];"),
              HasSubstr("out-of-bounds device read: 4 bytes at byte -4 of 'out'"));
  // The last quarter of a vector.
  EXPECT_THAT(
      fault_of("if (t == 0) *(device float4*)(out + 60) = float4(1);", {1}, 63),
      HasSubstr("out-of-bounds device write: 16 bytes at byte 240 of 'out', which has 252"));
  // Far away, outside every argument.
  EXPECT_THAT(fault_of("out[ulong(t) << 28] = 1;"), HasSubstr("wild device write"));
}

TEST(MetalFaults, AStructThatIsTooSmall) {
  std::vector<float> out(4);
  const uint32_t small = 1;
  EXPECT_THAT(
      TextKernel(
          "struct P { uint a; uint b; };\n[[kernel]] void k(device float* out [[buffer(0)]],\n"
          "  constant P& p [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) { out[t] = p.b; "
          "}")
          .output("out", out)
          .bytes("p", small)
          .grid({1}, {4})
          .fault(),
      HasSubstr("out-of-bounds device read: 4 bytes at byte 4 of 'p', which has 4"));
}

TEST(MetalFaults, ThreadgroupAccessOutOfBounds) {
  EXPECT_THAT(
      fault_of("threadgroup float s[32]; threadgroup float other[32]; threadgroup float* p = s;\n"
               "if (t < 32) other[t] = 0;\n p[t] = 1;"),
      HasSubstr("out-of-bounds threadgroup write: 4 bytes at byte 128 of 's', which has 128"));
  EXPECT_THAT(fault_of("threadgroup float s[32]; s[t] = 1;"),
              HasSubstr("array index out of bounds"));
}

TEST(MetalFaults, AMissingBarrier) {
  const std::string body = "threadgroup float s[64]; s[t] = t; %s\nout[t] = s[t ^ 32];";
  const auto with = [&](const std::string& barrier) {
    return std::string(body).replace(body.find("%s"), 2, barrier);
  };
  EXPECT_EQ(fault_of(with("threadgroup_barrier(mem_flags::mem_threadgroup);")), "");
  // A barrier for the wrong memory, and one for the simdgroup only.
  for (const char* barrier :
       {"threadgroup_barrier(mem_flags::mem_device);", "threadgroup_barrier(mem_flags::mem_none);"})
    EXPECT_THAT(
        fault_of(with(barrier)),
        AllOf(HasSubstr("race: read of byte 128 of 's' is not ordered with the write by thread 32"),
              HasSubstr("k.metal:6")));
  // The other simdgroup has not started, unless it ran first.
  EXPECT_THAT(fault_of(with("simdgroup_barrier(mem_flags::mem_threadgroup);")),
              HasSubstr("uninitialised threadgroup memory"));
  EXPECT_THAT(
      fault_of("threadgroup float s[64]; s[t] = t; simdgroup_barrier(mem_flags::mem_threadgroup);\n"
               "if (t > 31) out[t] = s[t ^ 32];"),
      HasSubstr("race: read of byte 0 of 's' is not ordered with the write by thread 0"));
  // The next round's write must wait for this round's reads.
  EXPECT_THAT(fault_of("threadgroup float s[64]; float sum = 0;\n"
                       "for (int i = 0; i < 2; ++i) {\n  s[t] = i; "
                       "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                       "  if (t == 0) sum += s[63];\n}\nout[t] = sum;"),
              HasSubstr("race: write of byte 252 of 's' is not ordered with the read by thread 0"));
}

TEST(MetalFaults, ASimdgroupBarrierSufficesWithinASimdgroup) {
  EXPECT_EQ(fault_of("threadgroup float s[64]; s[t] = t; "
                     "simdgroup_barrier(mem_flags::mem_threadgroup);\nout[t] = s[t ^ 1];"),
            "");
  EXPECT_THAT(fault_of("threadgroup float s[64]; s[t] = t; out[t] = s[t ^ 1];"),
              HasSubstr("uninitialised"));
}

TEST(MetalFaults, RacesOnDeviceMemory) {
  EXPECT_THAT(
      fault_of("out[t / 2] = t;"),
      HasSubstr("race: write of byte 0 of 'out' is not ordered with the write by thread 0"));
  EXPECT_THAT(fault_of("out[group * 32 + t] = t;", {2}, 128),
              HasSubstr("thread 32 of another threadgroup"));
  EXPECT_THAT(fault_of("float x = out[0]; if (group == 2) out[0] = x;", {3}),
              HasSubstr("not ordered with the read by several threadgroups"));
  EXPECT_EQ(fault_of("out[t] = t; threadgroup_barrier(mem_flags::mem_device); \nif (t < 32) out[t] "
                     "+= out[63 - t];",
                     {1}),
            "");
}

TEST(MetalFaults, RaceDetectionCanBeDisabled) {
  EXPECT_EQ(fault_of("out[t / 2] = t;", {1}, 64, {.finds_races = false}), "");
}

TEST(MetalFaults, UninitialisedThreadgroupMemory) {
  EXPECT_THAT(fault_of("threadgroup float s[64]; if (t < 32) s[t] = t; "
                       "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                       "out[t] = s[63 - t];"),
              AllOf(HasSubstr("read of uninitialised threadgroup memory: byte 252 of 's'"),
                    HasSubstr("thread 0]")));
  // Data left by the previous threadgroup is not initialised for this one.
  EXPECT_THAT(fault_of("threadgroup float s[64]; if (group == 0) s[t] = t; out[t] = s[t];", {2}),
              AllOf(HasSubstr("uninitialised"), HasSubstr("threadgroup (1, 0, 0)")));
}

TEST(MetalFaults, MisalignedAccess) {
  EXPECT_THAT(fault_of("*(device float4*)(out + 1) = float4(t);"),
              AllOf(HasSubstr("misaligned access"), HasSubstr("k.metal:5")));
}

TEST(MetalFaults, DivergentBarriers) {
  EXPECT_THAT(
      fault_of("if (t >= 40) return;\nthreadgroup_barrier(mem_flags::mem_none); out[t] = t;"),
      HasSubstr("divergent barrier: thread 0 waits in threadgroup_barrier at k.metal:6, thread 40 "
                "has returned"));
  EXPECT_THAT(fault_of("if (t < 32) threadgroup_barrier(mem_flags::mem_none);\nelse "
                       "threadgroup_barrier(mem_flags::mem_none);"),
              HasSubstr("thread 32 in threadgroup_barrier at k.metal:6"));
}

TEST(MetalFaults, DivergentSimdOperations) {
  EXPECT_THAT(
      fault_of(
          "float v = t;\nif (lane < 5) v = simd_shuffle_xor(v, 1);\nv = simd_max(v); out[t] = v;"),
      HasSubstr("divergent simd_shuffle_xor at k.metal:6: lane 0 is there, lane 5 waits at "
                "simd_max at k.metal:7"));
  EXPECT_THAT(
      fault_of(
          "if (lane == 3) "
          "simdgroup_barrier(mem_flags::mem_none);\nthreadgroup_barrier(mem_flags::mem_none);"),
      HasSubstr("divergent simdgroup_barrier"));
}

TEST(MetalFaults, AShuffleFromALaneThatHasEnded) {
  EXPECT_THAT(fault_of("if (lane == 7) return;\nout[t] = simd_shuffle_xor(float(t), 1);"),
              HasSubstr("simd_shuffle_xor reads lane 7, which takes no part"));
}

TEST(MetalFaults, TooMuchThreadgroupMemory) {
  EXPECT_THAT(fault_of("threadgroup float s[8192]; threadgroup float more[1]; s[t] = more[0] = t;"),
              HasSubstr("too much threadgroup memory: 32784 bytes with 'more', 32768 are allowed"));
}

TEST(MetalFaults, TooManyThreads) {
  std::vector<float> out(64);
  TextKernel kernel(
      "[[kernel, max_total_threads_per_threadgroup(32)]] void k(device float* out [[buffer(0)]]) { "
      "out[0] = 1; }");
  EXPECT_THAT(kernel.output("out", out).grid({1}, {64}).fault(),
              HasSubstr("64 threads, max_total_threads_per_threadgroup says 32"));
}

TEST(MetalFaults, UnboundArguments) {
  std::vector<float> out(1);
  const std::string text =
      "constant bool kHasBias [[function_constant(0)]];\n"
      "[[kernel]] void k(device float* out [[buffer(0)]],\n"
      "  const device float* bias [[buffer(1), function_constant(kHasBias)]]) { out[0] = %s; }";
  const auto with = [&](const std::string& value) {
    return std::string(text).replace(text.find("%s"), 2, value);
  };
  EXPECT_EQ(TextKernel(with("kHasBias ? bias[0] : 0"))
                .output("out", out)
                .left_out("bias")
                .constant(0, 0)
                .fault(),
            "");
  EXPECT_THAT(
      TextKernel(with("bias[0]")).output("out", out).left_out("bias").constant(0, 0).fault(),
      HasSubstr("read of argument 'bias', which is not bound"));
  EXPECT_THAT(TextKernel(with("bias[0]")).output("out", out).constant(0, 0).fault(),
              HasSubstr("buffer(1) 'bias' is not bound"));
  EXPECT_THAT(TextKernel(with("0")).output("out", out).left_out("bias").fault(),
              HasSubstr("function constant kHasBias has no value"));
}

TEST(MetalFaults, WritesToAnInput) {
  const std::vector<float> in(1);
  EXPECT_THAT(
      TextKernel(
          "[[kernel]] void k(const device float* in [[buffer(0)]]) { *(device float*)in = 1; }")
          .input("in", in)
          .fault(),
      HasSubstr("write to argument 'in', which is an input"));
}

TEST(MetalFaults, WildAccesses) {
  EXPECT_THAT(fault_of("device float* p = nullptr; p[t] = 1;"), HasSubstr("undefined behaviour"));
  EXPECT_THAT(fault_of("device float* p = (device float*)ulong(8 * t); p[t] = 1;"),
              HasSubstr("wild write at 0x0"));
  // Another thread's variable.
  EXPECT_THAT(fault_of("threadgroup ulong place[1]; int mine[4]; mine[t % 4] = t;\nif (t == 0) "
                       "place[0] = ulong(&mine[0]);\n"
                       "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[t] = *(device "
                       "int*)place[0] + mine[0];"),
              HasSubstr("wild read at"));
}

TEST(MetalFaults, StackOverflow) {
  EXPECT_THAT(fault_of("int big[40000]; for (int i = 0; i < 40000; ++i) big[(i * 7 + t) % 40000] = "
                       "i; out[t] = big[t];"),
              HasSubstr("stack overflow"));
}

TEST(MetalFaults, UndefinedArithmetic) {
  EXPECT_THAT(fault_of("out[t] = 1 << (t + 1);"), HasSubstr("shift by more than the width"));
  EXPECT_THAT(fault_of("out[t] = 5 / int(t);"), HasSubstr("division by zero"));
  EXPECT_THAT(fault_of("out[t] = 0x7fffffff + int(t);"), HasSubstr("signed overflow of +"));
}

TEST(MetalFaults, OutputsStayUnchanged) {
  std::vector<float> out(4, 7.0f);
  TextKernel kernel(
      "[[kernel]] void k(device float* out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) "
      "{ out[t] = 1; }");
  EXPECT_NE(kernel.output("out", out).grid({1}, {5}).fault(), "");
  EXPECT_EQ(out, std::vector<float>(4, 7.0f));
}

TEST(MetalFaults, TheMachineContinuesAfterAFault) {
  EXPECT_NE(fault_of("device float* p = nullptr; p[t] = 1;"), "");
  EXPECT_EQ(fault_of("out[t] = t;"), "");
}

}  // namespace
}  // namespace octavo::metal_sim

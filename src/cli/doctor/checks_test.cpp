#include "cli/doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A machine without problems.
DoctorFacts healthy() {
  DoctorFacts facts;
  facts.processor = {.active_isa = "amx",
                     .available_isas = {"scalar", "avx2", "avx512", "avx512-bf16", "amx"},
                     .flags = {"avx2", "amx_bf16"}};
  facts.cores = {.machine = 8, .allowed = 8, .threads = 8};
  facts.memory = {.machine_bytes = 32 * kGiB, .available_bytes = 30 * kGiB};
  facts.mlx_built = facts.mlx_loaded = "1.2.3";
  facts.folders = {{.name = "Hugging Face cache",
                    .path = "/cache/hub",
                    .ours = true,
                    .exists = true,
                    .readable = true,
                    .writable = true,
                    .free_bytes = 100 * kGiB},
                   {.name = "Ollama models", .path = "/ollama"}};
  facts.open_files = 65536;
  return facts;
}

// The finding of that name; all others must be well.
Finding only_finding(const DoctorFacts& facts, const std::string& name) {
  Finding wanted;
  for (const Finding& finding : check_facts(facts)) {
    if (finding.name == name) {
      wanted = finding;
    } else {
      EXPECT_EQ(finding.health, Health::kOk) << finding.name << ": " << finding.text;
    }
  }
  EXPECT_EQ(wanted.name, name);
  EXPECT_EQ(wanted.health != Health::kOk, !wanted.advice.empty()) << "advice where it is needed";
  return wanted;
}

TEST(Doctor, AGpuWhoseKernelsDifferIsReported) {
  DoctorFacts facts = healthy();
  facts.gpu = "Apple M4 Max";
  EXPECT_EQ(only_finding(facts, "GPU").health, Health::kOk);
  facts.gpu_difference = "the kernels differ";
  const Finding finding = only_finding(facts, "GPU");
  EXPECT_EQ(finding.health, Health::kWarning);
  EXPECT_EQ(finding.text, "Apple M4 Max; the kernels differ");
}

TEST(Doctor, AHealthyMachineHasNothingToDo) {
  const auto findings = check_facts(healthy());
  EXPECT_EQ(worst_of(findings), Health::kOk);
  for (const Finding& finding : findings) EXPECT_EQ(finding.advice, "") << finding.name;
}

TEST(Doctor, AProcessorWithoutAvx2IsSlow) {
  DoctorFacts facts = healthy();
  facts.processor = {.active_isa = "scalar", .available_isas = {"scalar"}, .flags = {"sse2"}};
  const Finding finding = only_finding(facts, "processor");
  EXPECT_EQ(finding.health, Health::kWarning);
  EXPECT_THAT(finding.text, HasSubstr("no AVX2"));
}

TEST(Doctor, AmxThatIsNotPermittedIsNamed) {
  DoctorFacts facts = healthy();
  facts.processor.available_isas.pop_back();
  facts.processor.active_isa = "avx512-bf16";
  const Finding finding = only_finding(facts, "processor");
  EXPECT_EQ(finding.health, Health::kWarning);
  EXPECT_THAT(finding.advice, HasSubstr("arch_prctl"));
}

TEST(Doctor, AProcessorWithoutAmxIsWell) {
  DoctorFacts facts = healthy();
  facts.processor = {.active_isa = "avx2", .available_isas = {"scalar", "avx2"}, .flags = {"avx2"}};
  EXPECT_EQ(only_finding(facts, "processor").health, Health::kOk);
}

TEST(Doctor, ASlowerSetByChoiceIsTold) {
  DoctorFacts facts = healthy();
  facts.processor.active_isa = "avx2";
  EXPECT_THAT(only_finding(facts, "processor").advice, HasSubstr("unset it for amx"));
}

TEST(Doctor, AnInstructionSetThatIsNotThereIsAProblem) {
  DoctorFacts facts = healthy();
  facts.processor.isa_error = "OCTAVO_ISA=neon: this machine has scalar";
  EXPECT_EQ(only_finding(facts, "processor").health, Health::kProblem);
}

TEST(Doctor, PartOfACoreIsLost) {
  DoctorFacts facts = healthy();
  facts.cores.cgroup_quota = 2.5;
  facts.cores.threads = 2;
  EXPECT_THAT(only_finding(facts, "cores").advice, HasSubstr("whole cores"));
  facts.cores.cgroup_quota = 2;
  EXPECT_EQ(only_finding(facts, "cores").health, Health::kOk);
}

TEST(Doctor, MoreThreadsThanCoresAreTold) {
  DoctorFacts facts = healthy();
  facts.cores.cgroup_quota = 2;
  EXPECT_THAT(only_finding(facts, "cores").advice, HasSubstr("OCTAVO_THREADS to 2"));
}

TEST(Doctor, LessThanOneCoreStillHasOneThread) {
  DoctorFacts facts = healthy();
  facts.cores.cgroup_quota = 0.5;
  facts.cores.threads = 1;
  EXPECT_THAT(only_finding(facts, "cores").advice, HasSubstr("whole cores"));
}

TEST(Doctor, TheTopologyIsShown) {
  DoctorFacts facts = healthy();
  for (CpuId id = 0; id < 8; ++id)
    facts.cores.topology.cpus.push_back({.id = id, .core = id % 4, .node = id % 2});
  EXPECT_EQ(only_finding(facts, "topology").text, "1 package, 2 NUMA nodes, 4 cores with 8 CPUs");
}

TEST(Doctor, AContainersMemoryCounts) {
  DoctorFacts facts = healthy();
  facts.memory.cgroup_bytes = 8 * kGiB;
  const Finding finding = only_finding(facts, "memory");
  EXPECT_EQ(finding.health, Health::kOk);
  EXPECT_THAT(finding.text, HasSubstr("8.00 GiB usable (cgroup limit; the machine has 32.0 GiB)"));
}

TEST(Doctor, LittleMemoryIsTold) {
  DoctorFacts facts = healthy();
  facts.memory.cgroup_bytes = kGiB / 2;
  EXPECT_THAT(only_finding(facts, "memory").advice, HasSubstr("raise the limit"));
}

TEST(Doctor, MemoryThatOthersHoldIsTold) {
  DoctorFacts facts = healthy();
  facts.memory.available_bytes = 10 * kGiB;
  EXPECT_THAT(only_finding(facts, "memory").advice, HasSubstr("--memory-fraction"));
}

TEST(Doctor, AnotherMlxIsAProblem) {
  DoctorFacts facts = healthy();
  facts.mlx_loaded = "1.2.4";
  const Finding finding = only_finding(facts, "MLX");
  EXPECT_EQ(finding.health, Health::kProblem);
  EXPECT_THAT(finding.text, HasSubstr("1.2.4 is loaded, octavo was built with 1.2.3"));
}

TEST(Doctor, ATakenPortIsAProblem) {
  DoctorFacts facts = healthy();
  facts.port.error = "cannot listen on 127.0.0.1 port 8000: Address already in use";
  EXPECT_EQ(only_finding(facts, "port").health, Health::kProblem);
  EXPECT_EQ(worst_of(check_facts(facts)), Health::kProblem);
}

TEST(Doctor, ACacheThatCannotBeReadIsAProblem) {
  DoctorFacts facts = healthy();
  facts.folders.front().readable = false;
  EXPECT_EQ(only_finding(facts, "Hugging Face cache").health, Health::kProblem);
}

TEST(Doctor, ACacheThatCannotBeWrittenIsTold) {
  DoctorFacts facts = healthy();
  facts.folders.front().writable = false;
  EXPECT_THAT(only_finding(facts, "Hugging Face cache").advice, HasSubstr("HF_HOME"));
}

TEST(Doctor, ACacheThatIsNotThereYetIsWell) {
  DoctorFacts facts = healthy();
  facts.folders.front().exists = facts.folders.front().readable = false;
  EXPECT_EQ(only_finding(facts, "Hugging Face cache").health, Health::kOk);
}

TEST(Doctor, AFullDiskIsTold) {
  DoctorFacts facts = healthy();
  facts.folders.front().free_bytes = kGiB;
  EXPECT_THAT(only_finding(facts, "Hugging Face cache").text, HasSubstr("only 1.00 GiB free"));
}

TEST(Doctor, OthersFoldersNeedNotBeWritable) {
  DoctorFacts facts = healthy();
  facts.folders.back().exists = facts.folders.back().readable = true;
  EXPECT_EQ(only_finding(facts, "Ollama models").health, Health::kOk);
  facts.folders.back().readable = false;
  EXPECT_EQ(only_finding(facts, "Ollama models").health, Health::kWarning);
}

TEST(Doctor, TooFewOpenFilesAreTold) {
  DoctorFacts facts = healthy();
  facts.open_files = 1024;
  EXPECT_THAT(only_finding(facts, "open files").advice, HasSubstr("LimitNOFILE"));
}

TEST(Doctor, JsonHasTheChecksInOrderAndTheWorstStatus) {
  DoctorFacts facts = healthy();
  facts.version = "0.1.0";
  facts.port.error = "cannot listen on 127.0.0.1 port 8000: Address already in use";
  const auto findings = check_facts(facts);
  const auto report = nlohmann::json::parse(to_json(facts, findings));
  EXPECT_EQ(report["version"], "0.1.0");
  EXPECT_EQ(report["status"], "problem");
  ASSERT_EQ(report["checks"].size(), findings.size());
  for (size_t i = 0; i < findings.size(); ++i) {
    EXPECT_EQ(report["checks"][i]["name"], findings[i].name);
    EXPECT_EQ(report["checks"][i]["status"], name_of(findings[i].health));
    EXPECT_EQ(report["checks"][i]["detail"], findings[i].text);
    EXPECT_EQ(report["checks"][i]["fix"], findings[i].advice);
  }
}

TEST(Doctor, JsonHasTheFactsAndNullForUnknownOnes) {
  DoctorFacts facts = healthy();
  facts.cores.cgroup_quota = 2.5;
  facts.open_files = UINT64_MAX;
  const auto report = nlohmann::json::parse(to_json(facts, check_facts(facts)))["facts"];
  EXPECT_EQ(report["processor"]["isa"], "amx");
  EXPECT_EQ(report["processor"]["available_isas"].size(), 5u);
  EXPECT_EQ(report["processor"]["flags"], "avx2 amx_bf16");
  EXPECT_EQ(report["cores"]["cgroup_quota"], 2.5);
  EXPECT_TRUE(report["memory"]["cgroup_bytes"].is_null());
  EXPECT_EQ(report["memory"]["available_bytes"], 30 * kGiB);
  EXPECT_EQ(report["mlx"]["built"], "1.2.3");
  EXPECT_EQ(report["folders"][0]["path"], "/cache/hub");
  EXPECT_TRUE(report["container"].is_null());
  EXPECT_TRUE(report["open_files"].is_null());
}

TEST(Doctor, JsonReplacesBytesThatAreNotUtf8) {
  DoctorFacts facts = healthy();
  facts.folders.back().path = "/models/\xff";
  EXPECT_NO_THROW(nlohmann::json::parse(to_json(facts, check_facts(facts))));
}

}  // namespace
}  // namespace octavo

// The base of tests of claims: a run in memory, and cuts in its log.

#ifndef SATRAP_DEPLOY_COORDINATOR_CLAIM_TESTING_GENERATION_CLAIM_FIXTURE_H_
#define SATRAP_DEPLOY_COORDINATOR_CLAIM_TESTING_GENERATION_CLAIM_FIXTURE_H_

#include <cstdint>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "common/file/testing/memory_file_system.h"
#include "deploy/coordinator/claim/cut_folders.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "gtest/gtest.h"

namespace satrap {

class GenerationClaimTest : public testing::Test {
 protected:
  static constexpr char kRun[] = "/runs/a";

  GenerationClaimTest() {
    EXPECT_TRUE(disk_.CreateFolders(kRun).ok());
    request_.job = SmallJob();
    request_.job.set_run_dir(kRun);
    request_.job.set_max_restarts(2);
    request_.job.mutable_embedding_ps()->set_replicas(2);
    ResolveJob(&request_.job);
    request_.run_id = 0xabc;
    request_.writer = 1;
    request_.unix_ms = 1234;
  }

  absl::StatusOr<ClaimedGeneration> Claim(const std::string& cause = "") {
    request_.ended.set_text(cause);
    return ClaimGeneration(request_, &disk_);
  }
  absl::StatusOr<ClaimedGeneration> Resume(const std::string& from = "") {
    ClaimRequest request = request_;
    request.next_job = true;
    request.from = from;
    return ClaimGeneration(request, &disk_);
  }
  RunLog Log() { return *RunLog::Open(kRun, &disk_, 99); }

  // The manifest of a cut at step 10 * cut.
  static CheckpointManifest ManifestOf(uint64_t generation, uint64_t cut) {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    manifest.set_step(10 * cut);
    manifest.set_generation(generation);
    manifest.set_cut(cut);
    manifest.set_order_fingerprint(7);
    manifest.mutable_position()->set_step(10 * cut);
    return manifest;
  }
  // Writes the cut's folder with its manifest.
  void MakeCut(const CheckpointManifest& manifest) {
    const std::string folder = FolderOfCut(kRun, CutName(manifest.generation(), manifest.cut()));
    ASSERT_TRUE(disk_.CreateFolders(folder).ok());
    ASSERT_TRUE(WriteManifest(folder, manifest, &disk_).ok());
  }
  void MakeCut(uint64_t generation, uint64_t cut) { MakeCut(ManifestOf(generation, cut)); }
  void Commit(const CheckpointManifest& manifest, CutEntry::LeftFor left_for = CutEntry::NOT_SAID) {
    MakeCut(manifest);
    const auto cut = CutFolders(kRun, manifest.generation(), &disk_)
                         .Check(CutName(manifest.generation(), manifest.cut()));
    ASSERT_TRUE(cut.ok()) << cut.status();
    RunLogEntry entry;
    *entry.mutable_cut() = *cut;
    if (left_for != CutEntry::NOT_SAID) {
      entry.mutable_cut()->set_leave(true);
      entry.mutable_cut()->set_left_for(left_for);
    }
    ASSERT_TRUE(Log().Append(entry).ok());
  }
  void Commit(uint64_t generation, uint64_t cut) { Commit(ManifestOf(generation, cut)); }

  MemoryFileSystem disk_;
  ClaimRequest request_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_TESTING_GENERATION_CLAIM_FIXTURE_H_

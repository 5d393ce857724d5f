// Quickly checks whether a saved cut is still as it was when it was committed. Reads the manifest
// and the sizes of the files, but not their contents; `satrap checkpoint verify` reads everything.
//
// Thread-safe: the functions depend only on their arguments and on the files.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_CUT_CHECK_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_CUT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "proto/checkpoint.pb.h"

namespace satrap {

// A file that a manifest names.
struct FileOfCut {
  std::string path;
  uint64_t bytes;
  std::vector<FileOfManifest::Part> parts;  // one after another
};
// All files that the manifest names. `folder` is the cut's.
std::vector<FileOfCut> FilesOfCut(const std::string& folder, const CheckpointManifest& manifest);

// What is wrong with the committed cut `cut` of the run in `run_dir`, whose log is `log`; empty if
// nothing is found:
//     missing: FOLDER
//     damaged: WHAT, with its path
// The second form is for a damaged file or manifest, and for another cut that lies in the place of
// this one.
std::string CutProblem(const RunLog& log, const std::string& run_dir, const std::string& cut,
                       FileSystem* file_system = DiskFileSystem());

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_CUT_CHECK_H_

// Identifies the build of the programs in a pod. The processes of a run must be of one build, but
// while an image is replaced, pods of two images run at the same time.
//
// Thread-safe: a function of its argument and of the files.

#ifndef SATRAP_DEPLOY_POD_BUILD_ID_H_
#define SATRAP_DEPLOY_POD_BUILD_ID_H_

#include <string>

namespace satrap {

// A text of 16 hexadecimal digits that is the same for the same programs: a hash of the bytes of
// all roles' programs below `programs_dir`, including the NN worker's for cards if it is there.
// Empty if one of them cannot be read; then builds are not compared.
std::string BuildOf(const std::string& programs_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_BUILD_ID_H_

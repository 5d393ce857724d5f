// The base of tests of a role's process. Each case runs in a separate process, together with a
// coordinator (fake_coordinator.h), so that the test sees from outside how the process ends.

#ifndef SATRAP_COMMON_ROLE_TESTING_ROLE_FIXTURE_H_
#define SATRAP_COMMON_ROLE_TESTING_ROLE_FIXTURE_H_

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "common/role/ending.h"
#include "common/role/role_runtime.h"
#include "common/role/testing/fake_coordinator.h"
#include "gtest/gtest.h"

namespace satrap {

using Body = std::function<absl::Status(RoleRuntime&, FakeCoordinator&)>;
using Prepare = std::function<void(FakeCoordinator&)>;

// The path at which the role of the running test leaves its Ending. It is the same in the process
// of a test case as in the test itself.
std::string EndingPathOfTest();

// Runs a coordinator, and a role with `body`, in the process of the test case. `prepare` may change
// the coordinator before the role starts; `flags` are additional flags of the role. Exits with the
// role's code.
[[noreturn]] void RunCase(const Body& body, const Prepare& prepare = nullptr,
                          const std::vector<std::string>& flags = {});

// Call at the end of a body. Finishes the run with an empty result, and waits until the coordinator
// knows that the run has finished.
absl::Status FinishRole(RoleRuntime& runtime);

class RoleRuntimeTest : public ::testing::Test {
 protected:
  RoleRuntimeTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  ~RoleRuntimeTest() override { std::remove(EndingPathOfTest().c_str()); }
  // The Ending that the role of the last case has left; an empty message if it left none.
  static Ending Left() { return ReadEnding(EndingPathOfTest()).value_or(Ending()); }
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_TESTING_ROLE_FIXTURE_H_

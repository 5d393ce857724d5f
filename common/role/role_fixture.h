// The base of tests of a role's process: cases that each run in a separate process, with a
// coordinator (fake_coordinator.h), so that the test sees from outside how it ends.

#ifndef SATRAP_COMMON_ROLE_ROLE_FIXTURE_H_
#define SATRAP_COMMON_ROLE_ROLE_FIXTURE_H_

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "common/role/ending.h"
#include "common/role/fake_coordinator.h"
#include "common/role/role_runtime.h"
#include "gtest/gtest.h"

namespace satrap {

using Body = std::function<absl::Status(RoleRuntime&, FakeCoordinator&)>;
using Prepare = std::function<void(FakeCoordinator&)>;

// Where the role of the running test leaves its Ending; the same path in the process of its case.
std::string EndingPathOfTest();

// Runs a coordinator, which `prepare` may change first, and a role with `body`, in the process of
// the test case. `flags` are more flags of the role. Exits with the role's code.
[[noreturn]] void RunCase(const Body& body, const Prepare& prepare = nullptr,
                          const std::vector<std::string>& flags = {});

// The end of a body: finishes with an empty result and waits until the coordinator knows.
absl::Status FinishRole(RoleRuntime& runtime);

class RoleRuntimeTest : public ::testing::Test {
 protected:
  RoleRuntimeTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  ~RoleRuntimeTest() override { std::remove(EndingPathOfTest().c_str()); }
  // What the role of the last case has left; empty if it left nothing.
  static Ending Left() { return ReadEnding(EndingPathOfTest()).value_or(Ending()); }
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_ROLE_FIXTURE_H_

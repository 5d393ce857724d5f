// Test support: a kubectl that answers from a list and notes how it was called.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_KUBECTL_TESTING_FAKE_KUBECTL_H_
#define SATRAP_DEPLOY_SUBMIT_KUBECTL_TESTING_FAKE_KUBECTL_H_

#include <string>
#include <vector>

#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {

class FakeKubectlTest : public ::testing::Test {
 protected:
  struct Answer {
    std::string out;
    int code = 0;
    std::string err;
    bool once = false;  // the answer of one call, after which later answers to it count
  };

  void SetUp() override;

  // The program's path.
  std::string program() const { return dir_ + "/kubectl"; }
  // Calls whose arguments, joined by blanks, match the glob `pattern` get the answer, unless an
  // earlier pattern matches. A call without an answer fails, unless AnswerOthersBy was called.
  void On(const std::string& pattern, const Answer& answer);
  void On(const std::string& pattern, const std::string& out) {
    On(pattern, Answer{out, 0, "", false});
  }
  // Calls that match no pattern are answered by the program `script`, which is in dir_. Its first
  // argument is the path of a file with what the call got as its stdin; the others are the call's.
  void AnswerOthersBy(const std::string& script);

  // The arguments of each call, joined by blanks, and what call number `call` got as its stdin.
  std::vector<std::string> Calls() const;
  std::string Input(size_t call) const;

  const TempDir temp_;
  const std::string dir_ = temp_.path();

 private:
  int rules_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_KUBECTL_TESTING_FAKE_KUBECTL_H_

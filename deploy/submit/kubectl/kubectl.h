// Runs kubectl, so that contexts, logins and proxies are the user's own.
//
// Not thread-safe, and for a process without other children. Every call but Stream has a deadline.

#ifndef SATRAP_DEPLOY_SUBMIT_KUBECTL_KUBECTL_H_
#define SATRAP_DEPLOY_SUBMIT_KUBECTL_KUBECTL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace satrap {

// How a call that was shown as it ran has ended.
struct Streamed {
  int signal = 0;  // SIGINT or SIGTERM, which came and ended it; 0: none
  int code = 0;    // its exit code, or 128 and the number of the signal that killed it
  bool succeeded() const { return signal == 0 && code == 0; }
};

class Kubectl {
 public:
  // `space`: the namespace of every call; empty: that of the user's context. `program` is found on
  // the PATH unless it has a slash.
  explicit Kubectl(std::string space, std::string program = "kubectl")
      : space_(std::move(space)), program_(std::move(program)) {}

  // Runs it with `args` and `input` as its stdin, and returns what it prints. After 3 s, what it
  // says is also shown as it comes: a login may ask the user for something. NOT_FOUND: there is no
  // kubectl. FAILED_PRECONDITION: it fails, with what it says, in one line. DEADLINE_EXCEEDED: it
  // does not end within a minute, or five if it says something to a user, and was killed.
  absl::StatusOr<std::string> Run(std::vector<std::string> args, absl::string_view input = "");

  // As Run with `-o json`, and reads what it prints into `answer`, of a type of
  // proto/kubectl.proto. Nothing printed, as by --ignore-not-found, leaves `answer` empty. Errors
  // as Run; INTERNAL: it is not the JSON that was expected.
  absl::Status Ask(std::vector<std::string> args, google::protobuf::Message* answer,
                   absl::string_view input = "");

  // Runs it with this process's stderr until it ends, or until SIGINT or SIGTERM comes, which ends
  // it. `show` gets each line that it prints, with its line end if it has one. Errors as Run.
  // REQUIRES: SIGINT, SIGTERM and SIGCHLD are blocked in all threads
  absl::StatusOr<Streamed> Stream(std::vector<std::string> args,
                                  const std::function<void(absl::string_view line)>& show);

  // Becomes kubectl with `args`. Returns why it cannot, as Run.
  absl::Status Become(std::vector<std::string> args);

  const std::string& space() const { return space_; }

 private:
  std::vector<std::string> CommandOf(std::vector<std::string> args) const;
  absl::Status NotStarted(int error) const;

  const std::string space_;
  const std::string program_;
};

// Blocks the signals that Stream reads. REQUIRES: no other thread
void BlockSignalsOfStream();

// Waits. Returns the signal, of SIGINT and SIGTERM, that came meanwhile and ended the wait; else 0.
// REQUIRES: as Stream
int WaitForSignal(int64_t timeout_ms);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_KUBECTL_KUBECTL_H_

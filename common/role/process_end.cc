#include "common/role/process_end.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/shortage.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"

namespace satrap {
namespace {

// The state of this process, global because its handlers are global. Never destroyed, because other
// threads may outlive main.
struct Process {
  Role role = COORDINATOR;
  int index = 0;
  std::string ending_path;
  std::atomic<const char*> doing = "starts";
  std::atomic<bool> ending = false;
};
Process& ThisProcess() {
  static Process* const process = new Process;
  return *process;
}

[[noreturn]] void End(const Ending& ending) {
  Process& process = ThisProcess();
  // Either another thread has failed as well, or reporting the first failure has itself failed.
  // Only the first failure is reported.
  if (process.ending.exchange(true)) _exit(kExitStartAgain);
  std::fprintf(stderr, "error: %s\n", ending.text().c_str());
  std::fflush(stderr);
  LeaveEnding(process.ending_path, ending);
  if (ending.kind() == Ending::UNCLASSIFIED) std::abort();
  _exit(kExitStartAgain);
}

Ending EndingOfShortage(Role role, int index, absl::string_view doing, Shortage shortage,
                        absl::string_view what) {
  const absl::Status error =
      MarkShortage(absl::ResourceExhaustedError(
                       absl::StrCat(MemberName(role, index), ", while it ", doing, ": ", what)),
                   shortage);
  return FailureOf(role, index, error);
}

[[noreturn]] void OnTerminate() {
  const Process& process = ThisProcess();
  const std::exception_ptr error = std::current_exception();
  if (error == nullptr) std::abort();  // a thread that was not joined: a bug, not an exception
  End(EndingOfException(process.role, process.index, process.doing.load(), error));
}

[[noreturn]] void OnShortage(Shortage shortage, const std::string& what) {
  const Process& process = ThisProcess();
  End(EndingOfShortage(process.role, process.index, process.doing.load(), shortage, what));
}

}  // namespace

void ReportUnexpectedEnd(Role role, int index, const std::string& ending_path) {
  Process& process = ThisProcess();
  process.role = role;
  process.index = index;
  process.ending_path = ending_path;
  std::set_terminate(OnTerminate);
  SetShortageHandler(OnShortage);
}

void NowDoing(const char* what) { ThisProcess().doing = what; }

Ending EndingOfException(Role role, int index, absl::string_view doing, std::exception_ptr error) {
  CHECK(error != nullptr);
  Shortage shortage = Shortage::kNone;
  std::string what = "an exception of an unknown type";
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::bad_alloc& thrown) {
    shortage = Shortage::kMemory;
    what = absl::StrCat("no memory is left (", thrown.what(), ")");
  } catch (const std::system_error& thrown) {
    // Most errors of this type mean that a thread cannot be started.
    if (thrown.code().category() == std::generic_category() ||
        thrown.code().category() == std::system_category()) {
      shortage = ShortageOfErrno(thrown.code().value());
    }
    what = shortage == Shortage::kProcesses
               ? absl::StrCat("no thread or process can be started (", thrown.what(), ")")
               : std::string(thrown.what());
  } catch (const std::exception& thrown) {
    what = absl::StrCat("an exception was not caught: ", thrown.what());
  } catch (...) {
  }
  if (shortage != Shortage::kNone) return EndingOfShortage(role, index, doing, shortage, what);
  Ending ending = EndingOf(Ending::MEMBER_FAILED, role, index,
                           absl::StrCat(MemberName(role, index), ", while it ", doing, ": ", what));
  return ending;
}

}  // namespace satrap

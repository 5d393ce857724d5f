#include "deploy/launcher/process/log_cutter.h"

#include <system_error>
#include <utility>

#include "common/thread/mutex.h"

namespace satrap {

struct LogCutter::Work {
  explicit Work(CutFile cut_file) : cut_file(std::move(cut_file)) {}
  const CutFile cut_file;
  Mutex mutex;
  CondVar changed;
  std::vector<std::string> paths GUARDED_BY(mutex);  // to be cut next
  bool busy GUARDED_BY(mutex) = false;               // cutting the files of a call of Cut
  bool stopping GUARDED_BY(mutex) = false;
};

LogCutter::LogCutter(CutFile cut_file) : work_(std::make_shared<Work>(std::move(cut_file))) {}

LogCutter::~LogCutter() {
  if (!thread_.joinable()) return;
  bool busy;
  {
    MutexLock lock(&work_->mutex);
    work_->stopping = true;
    busy = work_->busy;
    work_->changed.NotifyAll();
  }
  if (busy) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void LogCutter::Cut(const std::vector<std::string>& paths) {
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread(Serve, work_);
    } catch (const std::system_error&) {
      return;  // too many threads on this machine now
    }
  }
  MutexLock lock(&work_->mutex);
  if (work_->busy) return;
  work_->paths = paths;
  work_->busy = true;
  work_->changed.NotifyAll();
}

void LogCutter::Serve(const std::shared_ptr<Work>& work) {
  while (true) {
    std::vector<std::string> paths;
    {
      MutexLock lock(&work->mutex);
      while (!work->busy && !work->stopping) work->changed.Wait(&work->mutex);
      if (work->stopping) return;
      paths.swap(work->paths);
    }
    for (const std::string& path : paths) work->cut_file(path);
    MutexLock lock(&work->mutex);
    work->busy = false;
  }
}

}  // namespace satrap

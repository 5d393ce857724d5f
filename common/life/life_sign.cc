#include "common/life/life_sign.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace satrap {

Flag AliveFlag(int* descriptor) {
  Flag flag =
      NumberFlag("alive", "DESCRIPTOR",
                 "an open pipe to which the process writes one byte per second while it is alive",
                 descriptor, 0);
  flag.take = [descriptor, take_number = flag.take](const std::string& text) {
    const std::string wrong = take_number(text);
    if (!wrong.empty()) return wrong;
    struct stat file;
    const bool is_pipe = fstat(*descriptor, &file) == 0 && S_ISFIFO(file.st_mode) &&
                         (fcntl(*descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY;
    return std::string(is_pipe ? "" : ": must be the descriptor of an open, writable pipe");
  };
  return flag;
}

LifeSign::LifeSign(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ < 0) return;
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
}

void LifeSign::Give() const {
  if (descriptor_ < 0) return;
  // An error means that the pipe is full, or that nobody reads it any more.
  [[maybe_unused]] const ssize_t written = write(descriptor_, ".", 1);
}

LifeSignThread::LifeSignThread(const LifeSign* sign) : sign_(sign) {
  if (sign_->is_asked_for()) thread_ = std::thread([this] { Run(); });
}

LifeSignThread::~LifeSignThread() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void LifeSignThread::Run() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    sign_->Give();
    changed_.WaitFor(&mutex_, kLifeSignPeriodMs);
  }
}

}  // namespace satrap

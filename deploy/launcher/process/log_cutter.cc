#include "deploy/launcher/process/log_cutter.h"

#include <utility>

namespace satrap {

LogCutter::LogCutter(CutFile cut_file) : cut_file_(std::move(cut_file)), thread_(/*most=*/1) {}

void LogCutter::Cut(const std::vector<std::string>& paths) {
  thread_.Post([cut_file = cut_file_, paths] {
    for (const std::string& path : paths) cut_file(path);
  });
}

}  // namespace satrap

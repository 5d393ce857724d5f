// A ParsedPartSource is the PartSource of a real loader: it runs batch makers on the loader's
// parsing threads and holds their parts until they are asked for. It reads ahead, within the epoch,
// until `capacity_parts` parts wait; a batch that is being made then is still finished.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_BATCH_PARSED_PART_SOURCE_H_
#define SATRAP_DATA_LOADER_BATCH_PARSED_PART_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/executor.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/engine/part_source.h"
#include "data_loader/engine/split_supply.h"

namespace satrap {

class ParsedPartSource final : public PartSource {
 public:
  struct Options {
    uint32_t lane = 0;   // PartId.lane of all parts
    int num_makers = 1;  // batch makers at work at the same time; 1 if the stream is ordered
    size_t capacity_parts = 8;
  };
  // `parse_executor`'s tasks may block on the disk: it is not the executor of any engine. It and
  // `supply` are not owned and must outlive this object and its tasks.
  ParsedPartSource(std::shared_ptr<const StreamPlan> plan, const Options& options,
                   Executor* parse_executor, SplitSupply* supply);
  // Reading stops after the batch that is being made; an ask that is open is never answered.
  ~ParsedPartSource() override;

  void Next(Callback done) override;

  // Parts that are made and have not been asked for.
  size_t ready_parts() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_PARSED_PART_SOURCE_H_

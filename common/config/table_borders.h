// Test support: values on both sides of every border of tables (range_check.h).

#ifndef SATRAP_COMMON_CONFIG_TABLE_BORDERS_H_
#define SATRAP_COMMON_CONFIG_TABLE_BORDERS_H_

#include <string>
#include <utility>
#include <vector>

#include "common/config/optimizer_borders.h"
#include "common/config/range_check.h"

namespace satrap {

// Of a TableConfig with one segment.
inline std::vector<BorderCase> TableBorders() {
  const std::string optimizer = "segments[0].optimizer.";
  const std::string initializer = "segments[0].initializer.";
  const std::string segment = "segments[0].";
  std::vector<BorderCase> borders = {
      {"id", {"0", "65535"}, {"65536", "4294967295"}},
      {segment + "dim", {"1", "4096"}, {"0", "-1", "4097", "65536"}},
      Finite(initializer + "constant.value"),
      {initializer + "uniform.low", {"-1", "0.01"}, {"0.02", "-inf", "inf", "nan"}},
      {initializer + "uniform.high", {"-0.01", "1"}, {"-0.02", "-inf", "inf", "nan"}},
      Finite(initializer + "normal.mean"),
      NotNegative(initializer + "normal.stddev"),
      NotNegative(optimizer + "rowwise_adagrad.initial_accumulator"),
      Positive(optimizer + "rowwise_adagrad.epsilon"),
      NotNegative(optimizer + "sgd_l1.l1"),
      NotNegative(optimizer + "decayed_adagrad.initial_accumulator"),
      Positive(optimizer + "decayed_adagrad.epsilon"),
      Decay(optimizer + "decayed_adagrad.decay"),
      NotNegative(segment + "l2"),
      NotNegative(segment + "gradient_clip_norm"),
      NotNegative(segment + "weight_bound"),
      NotNegative(segment + "cow_clip.ratio"),
      Positive(segment + "cow_clip.floor"),
      {"reserve_rows", {"0", "1099511627776"}, {"-1", "1099511627777"}},
  };
  for (std::vector<BorderCase> more :
       {CommonOptimizerBorders(optimizer), ScheduleBorders("learning_rate_schedule")}) {
    for (BorderCase& border : more) borders.push_back(std::move(border));
  }
  return borders;
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_TABLE_BORDERS_H_

// Test support: values on both sides of every border of tables (range_check.h).

#ifndef SATRAP_COMMON_CONFIG_TABLE_BORDERS_H_
#define SATRAP_COMMON_CONFIG_TABLE_BORDERS_H_

#include <string>
#include <utility>
#include <vector>

#include "common/config/range_check.h"

namespace satrap {

// Of a TableConfig with one segment.
inline std::vector<BorderCase> TableBorders() {
  const std::string optimizer = "segments[0].optimizer.";
  const std::string initializer = "segments[0].initializer.";
  const std::string segment = "segments[0].";
  BorderCase dampening = Decay(optimizer + "momentum.dampening");
  dampening.with = {optimizer + "momentum.form=RATE_OUTSIDE"};
  std::vector<BorderCase> borders = {
      {"id", {"0", "65535"}, {"65536", "4294967295"}},
      {segment + "dim", {"1", "4096"}, {"0", "-1", "4097", "65536"}},
      Finite(initializer + "constant.value"),
      {initializer + "uniform.low", {"-1", "0.01"}, {"0.02", "-inf", "inf", "nan"}},
      {initializer + "uniform.high", {"-0.01", "1"}, {"-0.02", "-inf", "inf", "nan"}},
      Finite(initializer + "normal.mean"),
      NotNegative(initializer + "normal.stddev"),
      Positive(optimizer + "learning_rate"),
      NotNegative(optimizer + "adagrad.initial_accumulator"),
      Positive(optimizer + "adagrad.epsilon"),
      NotNegative(optimizer + "rowwise_adagrad.initial_accumulator"),
      Positive(optimizer + "rowwise_adagrad.epsilon"),
      Decay(optimizer + "adam.beta1"),
      Decay(optimizer + "adam.beta2"),
      Positive(optimizer + "adam.epsilon"),
      Decay(optimizer + "momentum.mu"),
      dampening,
      Decay(optimizer + "nesterov.mu"),
      NotNegative(optimizer + "sgd_l1.l1"),
      NotNegative(optimizer + "decayed_adagrad.initial_accumulator"),
      Positive(optimizer + "decayed_adagrad.epsilon"),
      Decay(optimizer + "decayed_adagrad.decay"),
      Decay(optimizer + "rmsprop.rho"),
      Positive(optimizer + "rmsprop.epsilon"),
      Decay(optimizer + "rmsprop.momentum"),
      Decay(optimizer + "adadelta.rho"),
      Positive(optimizer + "adadelta.epsilon"),
      Decay(optimizer + "amsgrad.beta1"),
      Decay(optimizer + "amsgrad.beta2"),
      Positive(optimizer + "amsgrad.epsilon"),
      Decay(optimizer + "adamw.beta1"),
      Decay(optimizer + "adamw.beta2"),
      Positive(optimizer + "adamw.epsilon"),
      NotNegative(optimizer + "adamw.weight_decay"),
      Positive(optimizer + "ftrl.beta"),
      NotNegative(optimizer + "ftrl.lambda1"),
      NotNegative(optimizer + "ftrl.lambda2"),
      NotNegative(optimizer + "ftrl.initial_accumulator"),
      Decay(optimizer + "ftml.beta1"),
      Decay(optimizer + "ftml.beta2"),
      Positive(optimizer + "ftml.epsilon"),
      NotNegative(segment + "l2"),
      NotNegative(segment + "gradient_clip_norm"),
      NotNegative(segment + "weight_bound"),
      NotNegative(segment + "cow_clip.ratio"),
      Positive(segment + "cow_clip.floor"),
      {"reserve_rows", {"0", "1099511627776"}, {"-1", "1099511627777"}},
  };
  for (BorderCase& border : ScheduleBorders("learning_rate_schedule")) {
    borders.push_back(std::move(border));
  }
  return borders;
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_TABLE_BORDERS_H_

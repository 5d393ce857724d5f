// Test support: values on both sides of every border of optimizers (range_check.h).

#ifndef SATRAP_COMMON_CONFIG_OPTIMIZER_BORDERS_H_
#define SATRAP_COMMON_CONFIG_OPTIMIZER_BORDERS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/range_check.h"

namespace satrap {

// Of what an optimizer of tables and of the dense network has in common, whose path is `path`: "" or
// "segments[0].optimizer.".
inline std::vector<BorderCase> CommonOptimizerBorders(const std::string& path) {
  BorderCase dampening = Decay(path + "momentum.dampening");
  dampening.with = {path + "momentum.form=RATE_OUTSIDE"};
  std::vector<BorderCase> borders = {Positive(path + "learning_rate"),
                                     NotNegative(path + "adagrad.initial_accumulator"),
                                     Positive(path + "adagrad.epsilon"),
                                     Decay(path + "momentum.mu"),
                                     dampening,
                                     Decay(path + "nesterov.mu"),
                                     Decay(path + "rmsprop.rho"),
                                     Positive(path + "rmsprop.epsilon"),
                                     Decay(path + "rmsprop.momentum"),
                                     Decay(path + "adadelta.rho"),
                                     Positive(path + "adadelta.epsilon"),
                                     NotNegative(path + "adamw.weight_decay"),
                                     Positive(path + "ftrl.beta"),
                                     NotNegative(path + "ftrl.lambda1"),
                                     NotNegative(path + "ftrl.lambda2"),
                                     NotNegative(path + "ftrl.initial_accumulator")};
  for (const char* kind : {"adam", "amsgrad", "adamw", "ftml"}) {
    borders.push_back(Decay(absl::StrCat(path, kind, ".beta1")));
    borders.push_back(Decay(absl::StrCat(path, kind, ".beta2")));
    borders.push_back(Positive(absl::StrCat(path, kind, ".epsilon")));
  }
  return borders;
}

// Of a DenseOptimizerConfig with one entry of `parameters`, which has a pattern.
inline std::vector<BorderCase> DenseOptimizerBorders() {
  std::vector<BorderCase> borders = {NotNegative("l2"),
                                     NotNegative("parameters[0].learning_rate_factor"),
                                     NotNegative("parameters[0].l2"),
                                     NotNegative("parameters[0].l1"),
                                     NotNegative("parameters[0].weight_decay"),
                                     Decay("averaged_weights.decay")};
  for (std::vector<BorderCase> more :
       {CommonOptimizerBorders(""), ScheduleBorders("learning_rate_schedule")}) {
    for (BorderCase& border : more) borders.push_back(std::move(border));
  }
  return borders;
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_OPTIMIZER_BORDERS_H_

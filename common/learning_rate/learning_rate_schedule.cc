#include "common/learning_rate/learning_rate_schedule.h"

#include <algorithm>
#include <cmath>

namespace satrap {
namespace {

constexpr double kPi = 3.14159265358979323846;

// How much of a period of `length` steps from `start` on is over at `step`, as a fraction: 0 before
// the period, 1 after it.
double Progress(int64_t step, double start, double length) {
  return std::clamp((static_cast<double>(step) - start) / length, 0.0, 1.0);
}

double FallTo(double end, double remaining) { return end + (1 - end) * remaining; }

double KindFactor(const LearningRateSchedule& schedule, int64_t step) {
  // Has no default case, so that the compiler reports a kind that is missing here.
  switch (schedule.kind_case()) {
    case LearningRateSchedule::kStep: {
      const int64_t falls = step / schedule.step().every_steps();
      return std::pow(schedule.step().factor(), static_cast<double>(falls));
    }
    case LearningRateSchedule::kExponential:
      return std::pow(
          schedule.exponential().factor(),
          static_cast<double>(step) / static_cast<double>(schedule.exponential().decay_steps()));
    case LearningRateSchedule::kPolynomial: {
      const LearningRateSchedule::Polynomial& polynomial = schedule.polynomial();
      const double x = Progress(step, static_cast<double>(polynomial.start_step()),
                                static_cast<double>(polynomial.decay_steps()));
      return FallTo(polynomial.end_factor(), std::pow(1 - x, polynomial.power()));
    }
    case LearningRateSchedule::kCosine: {
      const LearningRateSchedule::Cosine& cosine = schedule.cosine();
      const double x = Progress(step, static_cast<double>(cosine.start_step()),
                                static_cast<double>(cosine.decay_steps()));
      return FallTo(cosine.end_factor(), (1 + std::cos(kPi * x)) / 2);
    }
    case LearningRateSchedule::KIND_NOT_SET:
      return 1;
  }
  return 1;
}

// At the last step the factor is still above end_factor. So no step is wasted if end_factor is 0.
double CoolDownFactor(const LearningRateSchedule::CoolDown& cool_down, int64_t step) {
  const auto total = static_cast<double>(cool_down.total_steps());
  const double length = cool_down.share() * total;
  if (length == 0) return 1;
  return FallTo(cool_down.end_factor(), 1 - Progress(step, total - length, length));
}

}  // namespace

double LearningRateFactor(const LearningRateSchedule& schedule, int64_t step) {
  double factor = 1;
  if (step + 1 < schedule.warmup_steps()) {
    factor = static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps());
  }
  if (schedule.kind_case() != LearningRateSchedule::KIND_NOT_SET) {
    factor *= KindFactor(schedule, step);
  }
  if (schedule.has_cool_down()) factor *= CoolDownFactor(schedule.cool_down(), step);
  return factor;
}

}  // namespace satrap

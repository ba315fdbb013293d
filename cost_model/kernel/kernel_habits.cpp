// Whose kernels run? Front door: kernel_habits.
#include "cost_model/kernel/kernel_habits.hpp"

#include "cost_model/question/problem.hpp"

namespace zeroplan {

KernelHabits kernel_habits(const Problem& problem) {
  return code_of(problem).kernels(problem);
}

}  // namespace zeroplan

// Which runtimes are there? Front door: code_of. The one list of them.
#include "cost_model/question/problem.hpp"
#include "cost_model/runtime/ddp/code.hpp"
#include "cost_model/runtime/deepspeed/code.hpp"
#include "cost_model/runtime/fsdp2/code.hpp"
#include "cost_model/runtime/megatron/code.hpp"
#include "cost_model/runtime/nanotron/code.hpp"
#include "cost_model/runtime/paper/code.hpp"
#include "cost_model/runtime/zeroplan/code.hpp"

namespace zeroplan {
namespace {

// In the order of Runtime.
constexpr const RuntimeCode* runtimes[] = {&megatron_code,  &fsdp2_code, &ddp_code,
                                           &deepspeed_code, &paper_code, &zeroplan_code,
                                           &nanotron_code};
static_assert(std::size(runtimes) == names<Runtime>().size());

}  // namespace

const RuntimeCode& code_of(const RuntimeSpec& runtime) {
  if (runtime.other != nullptr) return *runtime.other;
  return *runtimes[static_cast<std::size_t>(runtime.kind)];
}

const RuntimeCode& code_of(const Problem& problem) {
  return code_of(problem.runtime);
}

}  // namespace zeroplan

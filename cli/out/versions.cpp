// Which program says so? Front door: versions.
#include "cli/out/versions.hpp"

#include <fmt/format.h>

#include "cost_model/answer/step_time.hpp"

namespace zeroplan {

const Versions& versions() {
  static const Versions own{.program = ZEROPLAN_VERSION,
                            .presets = ZEROPLAN_PRESETS_DIGEST,
                            .constants = constants_date(),
                            .corpus = ZEROPLAN_CORPUS_DIGEST};
  return own;
}

std::string version_text() {
  const Versions& own = versions();
  return fmt::format("zeroplan {}\npresets {}\nconstants {}\ncorpus {}", own.program, own.presets,
                     own.constants, own.corpus);
}

}  // namespace zeroplan

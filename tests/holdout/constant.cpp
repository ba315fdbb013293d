// What is fitted on steps? Front doors: studies, find_constant.
#include "tests/holdout/constant.hpp"

#include <array>

namespace zeroplan::holdout {
namespace {

constexpr std::size_t blackwell = 0;
constexpr std::size_t hopper = 1;
constexpr std::size_t ampere = 2;

template <std::size_t generation>
double& gemm(TimeConstants& c) {
  return c.generations[generation].gemm.sustained.efficiency;
}

constexpr std::array ampere_constants{
    Constant{"a.gemm", gemm<ampere>, 0.81},
    Constant{"a.k0",
             [](TimeConstants& c) -> double& { return c.generations[ampere].gemm.sustained.k0; },
             100},
    Constant{"flash1_slowness",
             [](TimeConstants& c) -> double& { return c.kernels.flash1_slowness; }, 1.7},
    Constant{"local_passes", [](TimeConstants& c) -> double& { return c.kernels.local_passes; }, 1},
    Constant{"local_gap", [](TimeConstants& c) -> double& { return c.kernels.local_gap; }, 1e-6},
    Constant{"unaligned", [](TimeConstants& c) -> double& { return c.kernels.unaligned_slowness; },
             1},
    Constant{"head_waste", [](TimeConstants& c) -> double& { return c.kernels.head_tile_waste; },
             1},
    Constant{"local_host", [](TimeConstants& c) -> double& { return c.host.local; }, 1e-6},
    Constant{"local_tp",
             [](TimeConstants& c) -> double& { return c.host.local_per_doubling_of_tp; }, 1e-6},
    Constant{"plain_softmax", [](TimeConstants& c) -> double& { return c.host.plain_softmax; },
             1e-6},
    Constant{"local_wait", [](TimeConstants& c) -> double& { return c.step.local_layers_wait; },
             1e-6},
    Constant{"straggling",
             [](TimeConstants& c) -> double& { return c.generations[ampere].straggling; }, 1e-6},
};

constexpr std::array hopper_constants{
    Constant{"h.gemm", gemm<hopper>, 0.72},
    Constant{"h.streaming",
             [](TimeConstants& c) -> double& { return c.generations[hopper].memory.streaming; },
             0.8},
    Constant{"h.eight_bit",
             [](TimeConstants& c) -> double& { return c.generations[hopper].gemm.eight_bit; }, 1},
    Constant{"copied_parts",
             [](TimeConstants& c) -> double& { return c.step.copied_parts_slowdown; }, 0.7},
    Constant{"in_parts", [](TimeConstants& c) -> double& { return c.host.in_parts; }, 1e-6},
    Constant{"nanotron_slice", [](TimeConstants& c) -> double& { return c.host.nanotron_slice; },
             1e-9},
    Constant{"nanotron_update", [](TimeConstants& c) -> double& { return c.host.nanotron_update; },
             1e-6},
};

constexpr std::array blackwell_constants{
    Constant{"b.gemm", gemm<blackwell>, 0.5},
    Constant{"b.eight_bit",
             [](TimeConstants& c) -> double& { return c.generations[blackwell].gemm.eight_bit; },
             1},
    Constant{"b.four_bit",
             [](TimeConstants& c) -> double& { return c.generations[blackwell].gemm.four_bit; }, 1},
    Constant{"parts_slowdown", [](TimeConstants& c) -> double& { return c.step.parts_slowdown; },
             0.7},
    Constant{"routing", [](TimeConstants& c) -> double& { return c.host.routing; }, 1e-6},
    Constant{"expert_product", [](TimeConstants& c) -> double& { return c.host.expert_product; },
             1e-9},
    Constant{"grace_slowness", [](TimeConstants& c) -> double& { return c.host.grace_slowness; },
             1},
    Constant{"engine_forward", [](TimeConstants& c) -> double& { return c.host.engine_forward; },
             1e-6},
    Constant{"engine_backward", [](TimeConstants& c) -> double& { return c.host.engine_backward; },
             1e-6},
};

constexpr std::array hopper_scan{
    Constant{"h.scan",
             [](TimeConstants& c) -> double& { return c.generations[hopper].memory.scan; }, 0.8},
};

constexpr std::array blackwell_scan{
    Constant{"b.scan",
             [](TimeConstants& c) -> double& { return c.generations[blackwell].memory.scan; },
             0.67},
};

constexpr std::array all{
    Study{"Ampere", ampere, ampere_constants},
    Study{"Hopper", hopper, hopper_constants},
    Study{"Blackwell", blackwell, blackwell_constants},
    Study{"Hopper's state spaces", hopper, hopper_scan, true},
    Study{"Blackwell's state spaces", blackwell, blackwell_scan, true},
};

}  // namespace

std::span<const Study> studies() {
  return all;
}

const Constant* find_constant(std::string_view name) {
  for (const Study& study : all) {
    for (const Constant& constant : study.constants) {
      if (constant.name == name) return &constant;
    }
  }
  return nullptr;
}

}  // namespace zeroplan::holdout

#pragma once
// How fast the host is: its link, and an optimizer step on it.

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Bytes a second of a GPU's link to the host's memory, in one direction: as measured, else the
/// GPU's own, else PCI Express of its time.
double host_link_bandwidth(const ClusterSpec& cluster);

/// Seconds from the last gradient on the GPU until the updated 16-bit parameters are back on it:
/// over PCI Express there and back, and Adam at the pace of the host's memory, which the ranks of a
/// node share. `updated`: elements of this rank's part, `matrices` of them in hidden matrices.
/// Sources: ZeRO-Offload (Ren et al. 2021, arXiv 2101.06840), section 5 and Table 4 (recalled:
/// DeepSpeed's CPU-Adam updates 10 billion parameters in 2.57 s on a DGX-2, at 46 % of its memory's
/// rate); rates of memory from the datasheets of NVIDIA's DGX-2, DGX A100 and DGX H100.
double host_update_seconds(const Problem& problem, std::int64_t updated, std::int64_t matrices = 0);

}  // namespace zeroplan

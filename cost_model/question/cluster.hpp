#pragma once
// What it is trained on: one kind of GPU, and the links that join GPUs inside and between nodes.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/measured_time.hpp"
#include "cost_model/question/names.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

struct TimeConstants;
class Fabric;

/// What launches a GPU's kernels.
enum class HostProcessor { x86, grace };

template <>
struct Spellings<HostProcessor> {
  static constexpr std::array<std::string_view, 2> value{"x86-64", "Grace"};
};

struct GpuSpec {
  std::string name;  // as people write it: A100-80GB
  std::string architecture;
  std::int64_t compute_capability = 0;  // CUDA: 10 x major + minor; 0: not CUDA
  Bytes memory;  // what the driver lets a process allocate, not the label on the box

  // Dense (not sparse) peaks in FLOP/s; 0: the GPU has no such unit.
  double fp32_flops = 0;
  double tf32_flops = 0;
  double fp16_flops = 0;
  double bf16_flops = 0;
  double fp8_flops = 0;
  double fp4_flops = 0;

  double memory_bandwidth = 0;     // bytes/s
  double host_link_bandwidth = 0;  // bytes/s in one direction; 0: PCI Express of its time
  HostProcessor host_processor = HostProcessor::x86;
  // Factors on the rate that its generation sustains in training, by what the board's power leaves;
  // products of 16 bits take more of it than narrower ones do for as many clocks.
  double sustained_clock = 1;
  double sustained_clock_16_bits = 1;
  // Factors on what the law of step time expects of a GPU of this name that runs alone, as a probe
  // measured this one: matrix products, and streams through its memory.
  double product_speed = 1;
  double memory_speed = 1;
  // Constants of the law of step time, for a fit; null: published ones (kernel/time_constants.hpp).
  const TimeConstants* constants = nullptr;
  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

enum class LinkKind { nvlink, xgmi, pcie };

template <>
struct Spellings<LinkKind> {
  static constexpr std::array<std::string_view, 3> value{"nvlink", "xgmi", "pcie"};
};

/// Device memory beside tensors that somebody measured on this cluster.
struct MeasuredOverheads {
  struct Communicator {
    std::int64_t ranks = 1;  // of one node
    Bytes bytes;             // once it has reduced and gathered
    friend bool operator==(const Communicator&, const Communicator&) = default;
  };
  Bytes context;  // with modules and cuBLAS; 0: not measured
  std::vector<Communicator> communicators;
  friend bool operator==(const MeasuredOverheads&, const MeasuredOverheads&) = default;
};

/// The switches between nodes (network/fabric.hpp), the same for all copies of a cluster; empty:
/// they carry all that the cards send. Equal where the fabrics are.
struct FabricHandle {
  std::shared_ptr<const Fabric> shared;

  explicit operator bool() const { return shared != nullptr; }
  const Fabric* operator->() const { return shared.get(); }
  const Fabric& operator*() const { return *shared; }
  friend bool operator==(const FabricHandle& a, const FabricHandle& b);
};

struct ClusterSpec {
  std::string name;
  GpuSpec gpu;
  std::int64_t gpus = 1;
  std::int64_t gpus_per_node = 8;  // GPUs that reach each other over `intra_node`
  LinkKind intra_node = LinkKind::nvlink;
  double intra_node_bandwidth = 0;  // bytes/s a GPU, one direction
  double inter_node_bandwidth =
      0;                           // bytes/s of all network cards of a node together, one direction
  std::int64_t network_cards = 0;  // of one node; 0: a node alone
  std::vector<MeasuredCollective> measured;  // asked before any formula of collective_time
  MeasuredOverheads overheads;               // asked before any estimate of overheads.hpp
  double host_link_bandwidth = 0;            // bytes/s of a GPU, one direction, as measured; 0: not
  FabricHandle fabric;                       // the switches between nodes
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

}  // namespace zeroplan

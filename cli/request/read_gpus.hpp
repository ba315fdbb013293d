#pragma once
// The GPUs of a question.

#include <string>
#include <vector>

#include "cli/request/arguments.hpp"
#include "planner/request.hpp"

namespace zeroplan {

struct GpuQuestion {
  ClusterSpec cluster;
  bool counted = true;  // else how many is asked: the cluster is one node
};

/// The cluster that --gpus, --nodes and --cluster mean. What it was read from is put into `origin`,
/// what was taken for granted is appended to `notes`. Throws InputError.
GpuQuestion read_gpus(const LayoutArguments& arguments,
                      Origin& origin,
                      std::vector<std::string>& notes);

}  // namespace zeroplan

#pragma once
// Schedules that put weight gradients off to fill the pipeline's bubbles.

#include <vector>

#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan {

/// As 1F1B, each weight gradient put off behind as many others as the rank has ranks before it: at
/// most p micro-batches are held. Source: Qi et al. (arXiv 2401.10241), section 2.3, figure 2.
std::vector<Pass> zb_h1(const Pipeline& pipeline, std::int64_t rank);

/// Twice the warm-up and twice the lag: at most 2p - 1. Source: the same, figure 3.
std::vector<Pass> zb_h2(const Pipeline& pipeline, std::int64_t rank);

/// Two chunks a rank, down the ranks and back up: at most 2p chunks, as p micro-batches of 1F1B.
/// Source: the same, section 6; PyTorch torch/distributed/pipelining/schedules.py
/// ScheduleZBVZeroBubble.
std::vector<Pass> zb_v(const Pipeline& pipeline, std::int64_t rank);

/// Two directions: at most p + 1 chunks. Source: DeepSeek-V3 report (arXiv 2412.19437), section
/// 3.2.1; deepseek-ai/DualPipe @bb214e8, dualpipe/dualpipe.py.
std::vector<Pass> dualpipe(const Pipeline& pipeline, std::int64_t rank);

}  // namespace zeroplan

#pragma once
// Constants of a whole step, with the rows they come from.

namespace zeroplan {

/// What computation loses while communication runs beside it, as a part of that time: both use
/// multiprocessors and HBM. Galvatron measured 1.126 on A100 (PKU-DAIR/Hetu-Galvatron
/// overlap_coefficient @cea12ff).
inline constexpr double overlap_slowdown = 0.126;

/// Seconds in which nanotron's optimizer goes through its parameters one by one in Python. Fitted
/// on its five rows whose step takes less than 0.7 s (docs/benchmark_summary.svg @2411b022).
inline constexpr double nanotron_update = 0.04;

/// Seconds in which tensor-parallel ranks wait for each other at each collective that nothing
/// hides, beyond what the network takes, in Megatron's own layers of 2021 to 2023. Fitted on
/// vTrain's rows with tp 2 to 8 beside tp 1, and on Korthikanti et al. 2022, Table 5.
inline constexpr double local_layers_wait = 200e-6;

/// What waiting for the slowest of many GPUs adds for each doubling of their number beyond 256.
/// Fitted on the four rows of Narayanan et al. 2021, Table 1, with more than 512 GPUs, beside those
/// with fewer.
inline constexpr double straggling = 0.025;
inline constexpr double straggling_from = 256;

}  // namespace zeroplan

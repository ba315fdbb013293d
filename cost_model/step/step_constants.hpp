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

/// What waiting for the slowest of many GPUs adds for each doubling of their number beyond 256.
/// Fitted on the four rows of Narayanan et al. 2021, Table 1, with more than 512 GPUs, beside those
/// with fewer.
inline constexpr double straggling = 0.025;
inline constexpr double straggling_from = 256;

}  // namespace zeroplan

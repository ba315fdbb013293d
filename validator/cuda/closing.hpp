#pragma once
// Where a GPU's memory went, as an equation with a remainder.

#include "cost_model/question/units.hpp"

namespace zeroplan::engine {

/// One GPU at the moment when its ranks' tensors took most.
struct Closing {
  Bytes used;           // as the driver reports it
  Bytes tensors;        // of every rank on it, by their ledgers
  Bytes context;        // streams too, and what other processes held when this one began
  Bytes modules;        // our kernels
  Bytes products;       // cuBLASLt: its handle and its kernels
  Bytes communicators;  // NCCL
  Bytes pages;          // what whole pages hold beyond the tensors in them; 0 with a pool
  Bytes pool;           // reserved by CUDA's pool beyond tensors, such as copies of messages that
                        // are on their way; 0 without a pool

  Bytes accounted() const {
    return tensors + context + modules + products + communicators + pages + pool;
  }
  Bytes unaccounted() const { return used - accounted(); }
  /// 32 MiB, since the driver rounds, and half a percent.
  Bytes allowed() const { return 32_MiB + Bytes{used.count() / 200}; }
  bool closes() const { return unaccounted() <= allowed() && -unaccounted() <= allowed(); }
};

}  // namespace zeroplan::engine

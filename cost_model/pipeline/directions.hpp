#pragma once
// A figure of forward passes, and the same of backward passes.

#include "cost_model/program/call.hpp"

namespace zeroplan {

/// A figure of both directions: in one timing, or in several.
template <class Seconds>
struct DirectionsOf {
  Seconds forward = 0;
  Seconds backward = 0;

  Seconds& at(During during) { return during == During::forward ? forward : backward; }
  const Seconds& at(During during) const { return during == During::forward ? forward : backward; }
  friend DirectionsOf operator*(double times, const DirectionsOf& d) {
    return {times * d.forward, times * d.backward};
  }
  DirectionsOf& operator+=(const DirectionsOf& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};
using Directions = DirectionsOf<double>;

}  // namespace zeroplan

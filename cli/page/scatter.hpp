#pragma once
// Private to the page: plans by memory and speed.

#include <string>
#include <vector>

#include "cli/page/drawing.hpp"

namespace zeroplan {

struct SpeedPoint {
  double memory;  // GiB of the fullest GPU
  double speed;   // tokens a second and GPU
};

/// A plan of the list.
struct ListedPlan {
  SpeedPoint at;
  bool front;  // no other of the list is both faster and smaller
  bool taken;  // ringed
  std::string name;
};

/// The plans, joined along their front; `space` is the front of all layouts, where it is known;
/// `capacity` in GiB.
void draw_scatter(Drawing& to,
                  const std::vector<ListedPlan>& plans,
                  const std::vector<SpeedPoint>& space,
                  double capacity);

}  // namespace zeroplan

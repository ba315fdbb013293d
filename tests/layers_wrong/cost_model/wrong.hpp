#pragma once
// An arrow that points the wrong way, for the test of layers.cmake.

#include "planner/plan.hpp"

#pragma once
// An include of what no other room enters.

#include "cost_model/program/play.hpp"

#include "cost_model/answer/estimate.hpp"

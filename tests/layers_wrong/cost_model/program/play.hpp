#pragma once
// No door of cost_model.

#include "tests/source_dir.hpp"

namespace zeroplan {

std::string source_dir() {
  return ZEROPLAN_SOURCE_DIR;
}

}  // namespace zeroplan

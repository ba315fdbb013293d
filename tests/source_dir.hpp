#pragma once

#include <string>

namespace zeroplan {

/** The folder of the checkout that the tests were built from, without a slash at its end. It is no
   macro on every command line: what is compiled in one checkout can then be taken from a cache in
   another. */
std::string source_dir();

}  // namespace zeroplan

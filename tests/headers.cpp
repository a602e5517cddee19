// No text of its own: CMake precompiles headers for a library that has a source which reads them.
#include "catch.h"

// The parts of a scenario file that have a form of their own. All report what they do not understand and go on.
#pragma once

#include "descriptor/reader.h"
#include "study/study.h"

namespace llmperf::study {

// The mapping of a section's key `flags`, or one of `rows`.
std::vector<Flag> read_flags(const descriptor::Node& node, descriptor::Problems& problems);
// `only`, `columns`, `pivot` and `parts` of a section.
View read_view(descriptor::Reader& section);

}  // namespace llmperf::study

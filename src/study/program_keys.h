// Keys that say how a program is started, whatever the arm's backend: its arguments and variables.
#pragma once

#include "base/records/json.h"
#include "base/result.h"
#include "study/yaml_reader.h"

namespace assay {

// Reads the text of one argument or value.
using ReadProgramText = Result<std::string> (*)(const YamlValue&);

// A list of texts, at most 1,024, the first of them a program's name.
Result<Json> read_arguments(const YamlValue& list, ReadProgramText read_text);
// A map of texts by the names of at most 256 variables.
Result<Json> read_variables(const YamlValue& map, ReadProgramText read_text);

}  // namespace assay

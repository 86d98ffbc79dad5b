// Rows out of a metrics file's text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "artifact/row.h"
#include "base/result.h"

namespace assay {

// The largest metrics file that is read: half of this machine's memory.
uint64_t max_metrics_bytes();

// `schema_version`: of the bundle. Calls each() for every record after the header of `text`, a
// phase's metrics file up to its last commit; a record that is no row of that phase is passed on as
// its error. A header that isn't the schema's, or text that isn't CSV, is the returned error. Text
// without a byte has no rows. `object` names the file in errors.
Status for_each_row(std::string_view text, Phase phase, int64_t schema_version,
                    const std::string& object, const std::function<void(Result<Row>)>& each);

}  // namespace assay

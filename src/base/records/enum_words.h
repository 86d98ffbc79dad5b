// Words of enums, as files and messages have them.
#pragma once

namespace assay {

// Specialised for an enum that JSON has as words (record.h): kAll, a range of its values, and
// name(value).
template <typename E>
struct EnumWords;

}  // namespace assay

// The class of the exception that ended a program, out of what it printed.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Of the last Python traceback, the exception's own name without its module
// ("BackendCompilerFailed"), also where each line has a prefix ("[rank0]: "); of a C++ program that
// std::terminate ended, the type that it names ("std::bad_alloc"). Empty: neither is there.
std::string exception_class(std::string_view output);

// Whether a class of either language means that memory ran out.
bool means_out_of_memory(std::string_view error_class);

}  // namespace assay

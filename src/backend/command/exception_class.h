// The class of the exception that ended a program, read from its output.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// The exception's own name in the last Python traceback, without its module
// ("BackendCompilerFailed"), also where each line has a prefix ("[rank0]: "); or the type named by
// a C++ program that std::terminate ended ("std::bad_alloc"). Empty: neither is there.
std::string exception_class(std::string_view output);

// True if a class of either language means that memory ran out.
bool means_out_of_memory(std::string_view error_class);

}  // namespace assay

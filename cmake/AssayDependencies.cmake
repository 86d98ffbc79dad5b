# Third-party libraries, all from Debian; scripts/install-deps names the packages.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(hwy REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
# Its own target has a definition for its threads, which nothing here uses, and which every object would carry.
find_library(SIMDJSON_LIBRARY simdjson REQUIRED)
if(ASSAY_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(ASSAY_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()

# Debian's dnnl-config.cmake asks for OpenCL's headers, which a CPU build has no use for.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})

# The OpenMP runtime that oneDNN brings, for omp_set_num_threads alone; -fopenmp isn't wanted, and clang would
# bring a second runtime.
add_library(assay_gomp INTERFACE)
target_link_libraries(assay_gomp INTERFACE gomp)

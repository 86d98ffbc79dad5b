# One interface target carries the compile rules; assay_module() makes one static library a module.

add_library(assay_options INTERFACE)
target_compile_options(assay_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wimplicit-fallthrough -Werror)
target_include_directories(assay_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
# A file's name in an object (gtest's failures) doesn't hold the clone's path, so that clones share a compiler cache.
target_compile_options(assay_options INTERFACE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees an overlap in every `"text" + string` (its bug 105651).
  target_compile_options(assay_options INTERFACE -Wno-restrict)
  if(ASSAY_SANITIZE)
    # With the sanitizers' calls between, it takes the other members of a variant for uninitialised.
    target_compile_options(assay_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own algorithms call what it has deprecated.
  target_compile_options(assay_options INTERFACE -Wno-deprecated-declarations)
  if(ASSAY_SANITIZE)
    # An empty std::optional that is read, or an index past a std::span, which no sanitizer sees.
    target_compile_definitions(assay_options INTERFACE _GLIBCXX_ASSERTIONS)
  endif()
endif()

# compile_together(TARGET): its sources are compiled thirty at a time. Apart stay those that include themselves once for
# each instruction set (Highway's), and what CMake leaves apart by itself: sources with options of their own.
function(compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ASSAY_UNITY} UNITY_BUILD_BATCH_SIZE 30)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    file(STRINGS ${source} includes_itself REGEX "^#define HWY_TARGET_INCLUDE")
    if(includes_itself)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# compile_apart(FILE...): sources of this folder that are compiled by themselves all the same, as each has a name in
# common with another one of its target, a class with a member of a type that it alone knows, or macros that the others
# shouldn't see.
function(compile_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# optimise_little(TARGET...): programs of tests, whose compilation takes little more than half of the time with -O1. The
# code that they test is optimised as ever.
function(optimise_little)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

# assay_module(NAME [DIR sub/folder] DEPS module... LIBS target... [RECURSE] [TUNED] [TEST_ENVIRONMENT NAME=VALUE...])
# NAME becomes the target assay_NAME of every *.cc in the folder; *_test.cc become NAME_test. TUNED keeps -O3, for what is
# measured; the others take -O2, which compiles faster.
# DEPS names the modules it may use: tests/layering.py holds them against src/README.md.
function(assay_module name)
  cmake_parse_arguments(ARG "RECURSE;TUNED" "" "DEPS;LIBS;TEST_LIBS;TEST_ENVIRONMENT" ${ARGN})
  if(ARG_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
    # A folder below with a CMakeLists.txt of its own is another module.
    file(GLOB nested */CMakeLists.txt)
    foreach(path ${nested})
      get_filename_component(folder ${path} DIRECTORY)
      list(FILTER sources EXCLUDE REGEX "^${folder}/")
    endforeach()
  else()
    file(GLOB sources CONFIGURE_DEPENDS *.cc)
  endif()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND assay_ OUTPUT_VARIABLE deps)
  add_library(assay_${name} STATIC ${sources})
  target_link_libraries(assay_${name} PUBLIC assay_options ${deps} ${ARG_LIBS})
  compile_together(assay_${name})
  if(NOT ARG_TUNED)
    target_compile_options(assay_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  if(ASSAY_BUILD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE assay_${name} ${ARG_TEST_LIBS} test_support GTest::gtest_main
                          GTest::gmock)
    compile_together(${name}_test)
    optimise_little(${name}_test)
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST
                         PROPERTIES LABELS unit TIMEOUT 600 ENVIRONMENT "${ARG_TEST_ENVIRONMENT}")
  endif()
endfunction()

# assay_fuzz(NAME module...): NAME_fuzz.cc of this folder as a libFuzzer target; `fuzzers` builds all of them.
if(ASSAY_BUILD_FUZZ)
  add_custom_target(fuzzers)
endif()
function(assay_fuzz name)
  if(ASSAY_BUILD_FUZZ)
    file(GLOB_RECURSE source ${name}_fuzz.cc)
    add_executable(${name}_fuzz ${source})
    list(TRANSFORM ARGN PREPEND assay_ OUTPUT_VARIABLE deps)
    target_link_libraries(${name}_fuzz PRIVATE ${deps} -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name}_fuzz)
  endif()
endfunction()

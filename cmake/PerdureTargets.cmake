# How every target of perdure is made: same language, same warnings, same sanitizers.

if(PERDURE_BUILD_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# What an application gets from perdure: the language and the public headers, no warnings and nothing of src/.
add_library(perdure_headers INTERFACE)
target_compile_features(perdure_headers INTERFACE cxx_std_23)
target_include_directories(perdure_headers INTERFACE "${PROJECT_SOURCE_DIR}/include")

# What perdure's own targets are built with.
add_library(perdure_flags INTERFACE)
target_link_libraries(perdure_flags INTERFACE perdure_headers)
target_include_directories(perdure_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_compile_options(perdure_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                               -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 takes the members of std::expected and std::variant for uninitialised when it moves them, and the buffers of
  # concatenated strings for overlapping.
  target_compile_options(perdure_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A version may stand for the whole end of a log: {{1}, "x"}.
  target_compile_options(perdure_flags INTERFACE -Wthread-safety -Wno-missing-braces)
endif()
if(PERDURE_SEEDED_BUGS)
  target_compile_definitions(perdure_flags INTERFACE PERDURE_SEEDED_BUGS)
endif()
if(PERDURE_WERROR)
  target_compile_options(perdure_flags INTERFACE -Werror)
endif()
if(PERDURE_SANITIZE)
  target_compile_options(perdure_flags INTERFACE -fsanitize=${PERDURE_SANITIZE} -fno-sanitize-recover=all
                                                 -fno-omit-frame-pointer)
  target_link_options(perdure_flags INTERFACE -fsanitize=${PERDURE_SANITIZE})
endif()

# What perdure's own programs allocate with, where it is there: transactions are made on one thread and dropped on another,
# which costs a fifth less with jemalloc. The library leaves that choice to the application.
add_library(perdure_allocator INTERFACE)
find_library(PERDURE_JEMALLOC jemalloc)
if(PERDURE_JEMALLOC AND NOT PERDURE_SANITIZE)
  target_link_libraries(perdure_allocator INTERFACE "${PERDURE_JEMALLOC}")
endif()

# perdure_library(store SOURCES a.cc b.cc LIBS perdure_base): one folder of src/ is one library, which tests and other
# folders link. Its objects also go into the libraries for applications (PerdureComponents.cmake), static or shared: so
# they are fit for both, and hide all that is not marked PERDURE_EXPORT.
function(perdure_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(perdure_${name}_objects OBJECT EXCLUDE_FROM_ALL ${ARG_SOURCES})
  set_target_properties(perdure_${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                                           VISIBILITY_INLINES_HIDDEN ON)
  add_library(perdure_${name} STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:perdure_${name}_objects>)
  set_target_properties(perdure_${name} PROPERTIES LINKER_LANGUAGE CXX)
  foreach(target perdure_${name}_objects perdure_${name})
    target_link_libraries(${target} PUBLIC perdure_headers ${ARG_LIBS} PRIVATE perdure_flags)
  endforeach()
endfunction()

# perdure_test(store_test SOURCES a_test.cc LIBS perdure_store): one binary, each TEST a ctest of its own.
# LABELS say what kind of test it is; TIMEOUT is in seconds for each TEST; SERIAL ones run with no other beside them.
# WHOLE makes one ctest of the binary, for tests that share something which takes long to start.
function(perdure_test name)
  if(NOT PERDURE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL;WHOLE" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE perdure_flags ${ARG_LIBS} GTest::gtest_main GTest::gmock)
  # Tests are most of what there is to compile, and what they test is optimised whatever they are.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  if(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" RUN_SERIAL ${ARG_SERIAL})
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                                                           RUN_SERIAL ${ARG_SERIAL})
endfunction()

# Builds perdure as a user does, and installs it into SCRATCH/static and SCRATCH/shared. The objects are the same for
# both: only the last link differs.
include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
file(REMOVE_RECURSE "${SCRATCH}")
set(configure "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/library" -G Ninja -DCMAKE_BUILD_TYPE=Release
              -DPERDURE_BUILD_TESTS=OFF -DPERDURE_DAEMON=OFF "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
foreach(kind shared static)
  if(kind STREQUAL shared)
    set(shared ON)
  else()
    set(shared OFF)
  endif()
  run(${configure} -DBUILD_SHARED_LIBS=${shared})
  run("${CMAKE_COMMAND}" --build "${WORK}/library")
  run("${CMAKE_COMMAND}" --install "${WORK}/library" --prefix "${SCRATCH}/${kind}")
endforeach()

file(GLOB_RECURSE static RELATIVE "${SCRATCH}/static" "${SCRATCH}/static/*")
list(FILTER static EXCLUDE REGEX "^include/perdure/[a-z_]+\\.h$")
list(SORT static)
set(expected
    lib/cmake/perdure/FindLMDB.cmake lib/cmake/perdure/FindLibNATS.cmake lib/cmake/perdure/perdureConfig.cmake
    lib/cmake/perdure/perdureConfigVersion.cmake lib/cmake/perdure/perdure_coreTargets-release.cmake
    lib/cmake/perdure/perdure_coreTargets.cmake lib/cmake/perdure/perdure_testingTargets-release.cmake
    lib/cmake/perdure/perdure_natsTargets-release.cmake lib/cmake/perdure/perdure_natsTargets.cmake
    lib/cmake/perdure/perdure_testingTargets.cmake lib/libperdure.a lib/libperdure_nats.a lib/libperdure_testing.a
    lib/perdure/perdure_etcd.so lib/perdure/perdure_postgres.so lib/pkgconfig/perdure.pc)
list(SORT expected)
if(NOT static STREQUAL expected)
  message(FATAL_ERROR "beside the headers there is:\n${static}\nexpected:\n${expected}")
endif()

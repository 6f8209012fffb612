# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Precompiles the headers that files without MLIR share.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/StdPch.cpp CONTENT "// Only carries the precompiled header.\n")
add_library(StdPch OBJECT ${CMAKE_BINARY_DIR}/StdPch.cpp)
target_precompile_headers(StdPch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/StdPch.h)
if(MTP_TESTS)
  target_compile_definitions(StdPch PRIVATE MTP_PCH_GTEST)
  target_link_libraries(StdPch PRIVATE GTest::gtest)
endif()

# Gives the header to all targets below `dir` that have none of their own and
# aren't marked MTP_NO_PCH. Programs are compiled like the libraries (-fPIC, not
# -fPIE), because they use their precompiled header.
function(mtp_precompile dir)
  get_property(children DIRECTORY ${dir} PROPERTY SUBDIRECTORIES)
  foreach(child ${children})
    mtp_precompile(${child})
  endforeach()
  get_property(targets DIRECTORY ${dir} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(own ${target} PRECOMPILE_HEADERS)
    get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    get_target_property(none ${target} MTP_NO_PCH)
    if(own OR reused OR none OR NOT type MATCHES "LIBRARY|EXECUTABLE")
      continue()
    endif()
    target_precompile_headers(${target} REUSE_FROM StdPch)
    if(type STREQUAL EXECUTABLE)
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endforeach()
endfunction()
mtp_precompile(${CMAKE_SOURCE_DIR})

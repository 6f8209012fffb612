# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds MLIR 22.1 and defines how mtp builds against it.
find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
find_program(MTP_LLD NAMES ld.lld-22 ld.lld PATHS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)

# Include paths of tablegen: the packages and the source tree.
set(MTP_TBLGEN_FLAGS -I${CMAKE_SOURCE_DIR})
foreach(dir ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  list(APPEND MTP_TBLGEN_FLAGS -I${dir})
endforeach()

# Headers of every file that includes MLIR, compiled once.
set(MTP_PCH_HEADER ${CMAKE_SOURCE_DIR}/cmake/MlirPch.h)

# mtp_mlir_library(NAME sources... [DEPENDS targets] [LINK libraries])
# A static library of code that includes MLIR headers.
function(mtp_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(TARGET MtpPch)
    target_precompile_headers(${name} REUSE_FROM MtpPch)
  endif()
  if(MTP_CHECKED_CASTS)
    target_compile_options(${name} PRIVATE -include ${CMAKE_SOURCE_DIR}/cmake/CheckedCasts.h)
  endif()
endfunction()

# mtp_mlir_executable(NAME sources... [LINK libraries])
# A program of code that includes MLIR headers. It is compiled like the libraries
# (-fPIC, not -fPIE), because it uses their precompiled header.
function(mtp_mlir_executable name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_include_directories(${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
  if(TARGET MtpPch)
    target_precompile_headers(${name} REUSE_FROM MtpPch)
  endif()
  if(MTP_CHECKED_CASTS)
    target_compile_options(${name} PRIVATE -include ${CMAKE_SOURCE_DIR}/cmake/CheckedCasts.h)
  endif()
endfunction()

# Written only if it differs: a new one would recompile everything.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/MtpPch.cpp CONTENT "// Only carries the precompiled header.\n")
add_library(MtpPch OBJECT ${CMAKE_BINARY_DIR}/MtpPch.cpp)
target_include_directories(MtpPch SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${CMAKE_BINARY_DIR})
target_precompile_headers(MtpPch PRIVATE ${MTP_PCH_HEADER})

# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fails if PROGRAM needs a shared library of LLVM or MLIR.
execute_process(COMMAND ldd ${PROGRAM} OUTPUT_VARIABLE libraries RESULT_VARIABLE code)
if(code)
  message(FATAL_ERROR "ldd ${PROGRAM} failed")
endif()
string(TOLOWER "${libraries}" libraries)
if(libraries MATCHES "llvm|mlir")
  message(FATAL_ERROR "${PROGRAM} needs LLVM:\n${libraries}")
endif()

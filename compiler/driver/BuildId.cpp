// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/BuildId.h"

#include <cstring>
#include <elf.h>
#include <link.h>

namespace {

struct Search {
  uintptr_t address; ///< in the object that is looked for
  std::string id;
};

/// The description of the GNU build id among the notes [begin, end).
std::string idInNotes(const char *begin, const char *end) {
  static const char *const digits = "0123456789abcdef";
  auto aligned = [](size_t size) { return (size + 3) & ~size_t(3); };
  while (begin + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    memcpy(&note, begin, sizeof note);
    const char *name = begin + sizeof note,
               *description = name + aligned(note.n_namesz);
    const char *next = description + aligned(note.n_descsz);
    if (next > end)
      break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        !memcmp(name, "GNU", 4)) {
      std::string id;
      for (size_t i = 0; i < note.n_descsz; ++i)
        (id += digits[uint8_t(description[i]) >> 4]) +=
            digits[description[i] & 15];
      return id;
    }
    begin = next;
  }
  return "";
}

int visit(dl_phdr_info *info, size_t, void *data) {
  auto *search = static_cast<Search *>(data);
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    here |= segment.p_type == PT_LOAD && search->address >= start &&
            search->address < start + segment.p_memsz;
  }
  for (int i = 0; here && i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    const char *notes =
        reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_NOTE && search->id.empty())
      search->id = idInNotes(notes, notes + segment.p_memsz);
  }
  return here;
}

} // namespace

std::string mtp::buildId() {
  Search search{reinterpret_cast<uintptr_t>(&visit), ""};
  dl_iterate_phdr(visit, &search);
  return std::string(MTP_VERSION) + " " + search.id;
}

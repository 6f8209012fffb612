// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/ElfCheck.h"

#include <cstring>
#include <elf.h>
#include <stdexcept>
#include <vector>

using namespace mtp;

namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr uint32_t kHarmless[] = {R_X86_64_NONE, R_X86_64_64, R_X86_64_RELATIVE,
                                  R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr uint32_t kHarmless[] = {R_AARCH64_NONE, R_AARCH64_ABS64,
                                  R_AARCH64_RELATIVE, R_AARCH64_GLOB_DAT,
                                  R_AARCH64_JUMP_SLOT};
#else
#error "compiled objects are checked on x86-64 and arm64 only"
#endif

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void require(bool condition, const char *message) {
  if (!condition)
    throw Refused(message);
}

/// The object as the dynamic loader will see it: addresses, not file offsets.
class Object {
public:
  explicit Object(const std::string &bytes) : bytes(bytes) {
    readHeader();
    readSegments();
    readDynamic();
  }
  void checkRelocations();
  void checkSymbols(const std::string &exported);

private:
  template <typename T> T at(uint64_t offset) const {
    T value;
    require(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset,
            "it is cut short");
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  /// File offset of `size` bytes at `address`.
  uint64_t offsetOf(uint64_t address, uint64_t size) const {
    for (const Elf64_Phdr &segment : loaded)
      if (address >= segment.p_vaddr &&
          address - segment.p_vaddr <= segment.p_filesz &&
          size <= segment.p_filesz - (address - segment.p_vaddr))
        return segment.p_offset + (address - segment.p_vaddr);
    throw Refused("it refers to an address outside of its file");
  }
  const Elf64_Phdr *segmentOf(uint64_t address) const {
    for (const Elf64_Phdr &segment : loaded)
      if (address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_memsz)
        return &segment;
    return nullptr;
  }
  template <typename T> T atAddress(uint64_t address) const {
    return at<T>(offsetOf(address, sizeof(T)));
  }

  void readHeader();
  void readSegments();
  void readDynamic();
  uint64_t symbolCount() const;
  std::string symbolName(uint32_t index) const;
  void checkTable(uint64_t address, uint64_t size) const;

  const std::string &bytes;
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> loaded;
  std::vector<Elf64_Dyn> dynamic;
  uint64_t symtab = 0, strtab = 0, strsz = 0, hash = 0, gnuHash = 0;
  uint64_t rela = 0, relasz = 0, jmprel = 0, pltrelsz = 0, relr = 0, relrsz = 0;
};

void Object::readHeader() {
  header = at<Elf64_Ehdr>(0);
  require(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
              header.e_ident[EI_CLASS] == ELFCLASS64 &&
              header.e_ident[EI_DATA] == ELFDATA2LSB,
          "it is not a 64-bit little-endian ELF file");
  require(header.e_type == ET_DYN, "it is not a shared object");
  require(header.e_machine == kMachine, "it was made for another processor");
  require(header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum > 0 &&
              header.e_phnum < 64,
          "its program header is malformed");
}

void Object::readSegments() {
  bool found = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    auto segment = at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    require((segment.p_flags & (PF_W | PF_X)) != (PF_W | PF_X),
            "it has memory that is writable and executable");
    require(segment.p_type != PT_INTERP, "it names an interpreter");
    require(segment.p_type != PT_TLS, "it has thread-local storage");
    if (segment.p_type == PT_LOAD) {
      uint64_t end;
      require(
          segment.p_offset <= bytes.size() &&
              segment.p_filesz <= bytes.size() - segment.p_offset &&
              segment.p_filesz <= segment.p_memsz &&
              segment.p_memsz < (uint64_t(1) << 40) &&
              !__builtin_add_overflow(segment.p_vaddr, segment.p_memsz, &end),
          "a segment reaches past its end");
      loaded.push_back(segment);
    }
    if (segment.p_type == PT_DYNAMIC) {
      require(!found, "it has two dynamic sections");
      found = true;
      for (uint64_t at = 0;; at += sizeof(Elf64_Dyn)) {
        require(at + sizeof(Elf64_Dyn) <= segment.p_filesz,
                "its dynamic section has no end");
        auto entry = this->at<Elf64_Dyn>(segment.p_offset + at);
        if (entry.d_tag == DT_NULL)
          break;
        dynamic.push_back(entry);
      }
    }
  }
  require(found, "it has no dynamic section");
}

void Object::readDynamic() {
  for (const Elf64_Dyn &entry : dynamic) {
    uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_NEEDED:
      throw Refused("it needs another library");
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_PREINIT_ARRAY:
    case DT_FINI:
    case DT_FINI_ARRAY:
      throw Refused("it has code that runs when it is loaded or unloaded");
    case DT_TEXTREL:
      throw Refused("it has text relocations");
    case DT_FLAGS:
      require(!(value & DF_TEXTREL), "it has text relocations");
      break;
    case DT_RPATH:
    case DT_RUNPATH:
    case DT_AUDIT:
    case DT_DEPAUDIT:
    case DT_FILTER:
    case DT_AUXILIARY:
      throw Refused("it names a search path or a library");
    case DT_REL:
      throw Refused("it has relocations of an unknown form");
    case DT_SYMTAB:
      symtab = value;
      break;
    case DT_STRTAB:
      strtab = value;
      break;
    case DT_STRSZ:
      strsz = value;
      break;
    case DT_HASH:
      hash = value;
      break;
    case DT_GNU_HASH:
      gnuHash = value;
      break;
    case DT_RELA:
      rela = value;
      break;
    case DT_RELASZ:
      relasz = value;
      break;
    case DT_JMPREL:
      jmprel = value;
      break;
    case DT_PLTRELSZ:
      pltrelsz = value;
      break;
    case DT_PLTREL:
      require(value == DT_RELA, "it has relocations of an unknown form");
      break;
    case DT_RELR:
      relr = value;
      break;
    case DT_RELRSZ:
      relrsz = value;
      break;
    default:
      break;
    }
  }
  require(symtab && strtab, "it has no dynamic symbols");
}

void Object::checkTable(uint64_t address, uint64_t size) const {
  require(size % sizeof(Elf64_Rela) == 0, "its relocations are malformed");
  for (uint64_t at = 0; at < size; at += sizeof(Elf64_Rela)) {
    auto entry = atAddress<Elf64_Rela>(address + at);
    bool harmless = false;
    for (uint32_t type : kHarmless)
      harmless |= ELF64_R_TYPE(entry.r_info) == type;
    require(harmless, "it has a relocation that is not plain data (such as an "
                      "indirect function)");
    const Elf64_Phdr *segment = segmentOf(entry.r_offset);
    require(segment && (segment->p_flags & PF_W) &&
                segment->p_memsz - (entry.r_offset - segment->p_vaddr) >= 8,
            "it has relocations outside of its writable data");
  }
}

void Object::checkRelocations() {
  checkTable(rela, relasz);
  checkTable(jmprel, pltrelsz);
  // Packed relative relocations: an even word is an address, an odd one a map
  // of the 63 words that follow the last one.
  uint64_t next = 0;
  auto target = [&](uint64_t address) {
    const Elf64_Phdr *segment = segmentOf(address);
    require(segment && (segment->p_flags & PF_W) &&
                segment->p_memsz - (address - segment->p_vaddr) >= 8,
            "it has relocations outside of its writable data");
  };
  for (uint64_t at = 0; at + 8 <= relrsz; at += 8) {
    auto word = atAddress<uint64_t>(relr + at);
    if (!(word & 1)) {
      target(word);
      next = word + 8;
      continue;
    }
    for (int bit = 1; bit < 64; ++bit)
      if (word >> bit & 1)
        target(next + (bit - 1) * 8);
    next += 63 * 8;
  }
}

uint64_t Object::symbolCount() const {
  if (hash)
    return atAddress<uint32_t>(hash + 4);
  require(gnuHash != 0, "its symbols have no hash table");
  auto buckets = atAddress<uint32_t>(gnuHash);
  auto first = atAddress<uint32_t>(gnuHash + 4);
  auto bloom = atAddress<uint32_t>(gnuHash + 8);
  uint64_t table = gnuHash + 16 + uint64_t(bloom) * 8;
  uint64_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i)
    last = std::max<uint64_t>(last, atAddress<uint32_t>(table + 4ull * i));
  if (last < first)
    return first;
  uint64_t chain = table + 4ull * buckets;
  while (!(atAddress<uint32_t>(chain + 4 * (last - first)) & 1))
    ++last;
  return last + 1;
}

std::string Object::symbolName(uint32_t index) const {
  require(index < strsz, "a symbol has no name");
  uint64_t begin = offsetOf(strtab, strsz) + index;
  uint64_t end = bytes.find('\0', begin);
  require(end != std::string::npos && end - begin < strsz - index,
          "a symbol has no name");
  return bytes.substr(begin, end - begin);
}

void Object::checkSymbols(const std::string &exported) {
  uint64_t count = symbolCount();
  require(count < (1u << 20), "it has too many symbols");
  bool found = false;
  for (uint64_t i = 1; i < count; ++i) {
    auto symbol = atAddress<Elf64_Sym>(symtab + i * sizeof(Elf64_Sym));
    std::string name = symbolName(symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF)
      throw Refused("it has the undefined symbol '" + name + "'");
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
      throw Refused("it has the indirect function '" + name + "'");
    if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL)
      continue;
    if (name != exported)
      throw Refused("it exports '" + name + "' besides '" + exported + "'");
    const Elf64_Phdr *segment = segmentOf(symbol.st_value);
    require(ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && segment &&
                (segment->p_flags & PF_X),
            "its entry is not a function");
    found = true;
  }
  if (!found)
    throw Refused("it does not export '" + exported + "'");
}

} // namespace

bool mtp::checkSharedObject(const std::string &bytes, const std::string &symbol,
                            std::string &error) {
  try {
    Object object(bytes);
    object.checkRelocations();
    object.checkSymbols(symbol);
    return true;
  } catch (const Refused &e) {
    error = std::string("the compiled object is refused: ") + e.what();
    return false;
  }
}

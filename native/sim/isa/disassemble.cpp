// Decoded instructions as text that LLVM's assembler takes back.
#include <cstring>

#include "sim/isa/registers.h"

namespace kerncap::sim {
namespace isa {
namespace {

bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }
bool begins(const char* name, const char* head) { return std::strncmp(name, head, std::strlen(head)) == 0; }

class Printer {
 public:
  explicit Printer(const Decoded& d) : d_(d), op_(*d.opcode) {}

  std::string text() {
    out_ = op_.mnemonic;
    if (d_.modifier == Modifier::dpp)
      out_ += "_dpp";
    else if (d_.modifier == Modifier::sdwa)
      out_ += "_sdwa";
    else if (op_.encoding == Encoding::VOP1 || op_.encoding == Encoding::VOP2 ||
             op_.encoding == Encoding::VOPC)
      out_ += "_e32";
    else if (op_.encoding == Encoding::VOP3 && op_.number < 448)
      out_ += "_e64";
    if (op_.mnemonic[0] == 'v' &&
        (has(op_.mnemonic, "fmamk") || has(op_.mnemonic, "fmaak") || has(op_.mnemonic, "madmk") ||
         has(op_.mnemonic, "madak") || has(op_.mnemonic, "accvgpr_mov")))
      out_ = op_.mnemonic;
    switch (op_.encoding) {
      case Encoding::SMEM:
        smem();
        break;
      case Encoding::DS:
        ds();
        break;
      case Encoding::FLAT:
      case Encoding::GLOBAL:
      case Encoding::SCRATCH:
        flat();
        break;
      case Encoding::MUBUF:
      case Encoding::MTBUF:
        buffer();
        break;
      default:
        for (unsigned n = 0; n < op_.slot_count; ++n) operand(alu(op_.slots[n], n));
        modifiers();
    }
    if (std::strcmp(op_.mnemonic, "s_endpgm") == 0 && d_.simm16 != 0)
      operand(std::to_string(d_.simm16 & 0xFFFF));
    return out_;
  }

 private:
  void operand(const std::string& text) {
    out_ += first_ ? " " : ", ";
    out_ += text;
    first_ = false;
  }
  void suffix(const std::string& text) { out_ += " " + text; }

  // ---- Scalar and vector ALU
  std::string alu(const Slot& slot, unsigned position) {
    switch (slot.field) {
      case 'D':
      case 'G':
        return vgpr_name(d_.vdst, slot.width, d_.dst_acc);
      case 'd':
        return sgpr_name(d_.vdst, slot.width);
      case 'b':
        return sgpr_name(d_.sdst, slot.width);
      case 'c':
        return op_.encoding == Encoding::VOPC && d_.modifier == Modifier::sdwa ? sgpr_name(d_.sdst, 2)
                                                                               : "vcc";
      case '0':
      case 'g':
        return source(0, slot.width);
      case '1':
        return source(1, slot.width);
      case '2':
        return source(2, slot.width);
      case 'K':
        return hex(d_.literal);
      case 'h':
        return hardware_register();
      case 'l':
        return std::to_string(d_.simm16 & 0xFFFF);
      default:
        return immediate(position);
    }
  }

  std::string source(unsigned n, unsigned width) {
    const unsigned code = d_.src[n];
    std::string text = source_name(code, width, d_.src_acc[n], d_.literal);
    const bool vop3p = op_.encoding == Encoding::VOP3P;
    const bool mix = vop3p && has(op_.mnemonic, "_mix");
    if (vop3p && !mix) return text;
    const bool negate = (d_.neg >> n & 1u) != 0;
    const bool absolute = ((mix ? d_.neg_hi : d_.abs) >> n & 1u) != 0;
    if (d_.modifier == Modifier::sdwa && (d_.modifier_word >> (n == 0 ? 19 : 27) & 1u) != 0)
      text = "sext(" + text + ")";
    if (absolute) text = "|" + text + "|";
    if (negate) {
      const bool number = code >= 128 && code < kSrcVgpr0 && !absolute;
      text = number ? "neg(" + text + ")" : "-" + text;
    }
    return text;
  }

  std::string hardware_register() {
    static constexpr const char* kNames[] = {
        nullptr,        "HW_REG_MODE",      "HW_REG_STATUS",    "HW_REG_TRAPSTS",
        "HW_REG_HW_ID", "HW_REG_GPR_ALLOC", "HW_REG_LDS_ALLOC", "HW_REG_IB_STS"};
    const unsigned bits = static_cast<unsigned>(d_.simm16) & 0xFFFFu;
    const unsigned id = bits & 63u, offset = bits >> 6 & 31u, size = (bits >> 11) + 1;
    std::string text = "hwreg(";
    text += id >= 1 && id <= 7 ? kNames[id] : std::to_string(id);
    if (offset != 0 || size != 32) text += ", " + std::to_string(offset) + ", " + std::to_string(size);
    return text + ")";
  }

  std::string immediate(unsigned /*position*/) {
    const unsigned bits = static_cast<unsigned>(d_.simm16) & 0xFFFFu;
    if (std::strcmp(op_.mnemonic, "s_waitcnt") == 0) return wait_counts(bits);
    if (has(op_.mnemonic, "s_set_gpr_idx_on") || has(op_.mnemonic, "s_set_gpr_idx_mode")) {
      static constexpr const char* kModes[] = {"SRC0", "SRC1", "SRC2", "DST"};
      std::string text;
      for (unsigned n = 0; n < 4; ++n)
        if ((bits >> n & 1u) != 0) text += (text.empty() ? "" : ",") + std::string(kModes[n]);
      return bits > 15 ? hex(bits) : "gpr_idx(" + text + ")";
    }
    if (op_.encoding == Encoding::SOPK) return hex(bits);
    return std::to_string(bits);
  }

  static std::string wait_counts(unsigned bits) {
    const unsigned vm = (bits & 15u) | (bits >> 14 & 3u) << 4, exp = bits >> 4 & 7u, lgkm = bits >> 8 & 15u;
    if ((bits & 0x3080u) != 0) return hex(bits);
    std::string text;
    const auto add = [&text](const char* name, unsigned value, unsigned most) {
      if (value != most)
        text += (text.empty() ? "" : " ") + std::string(name) + "(" + std::to_string(value) + ")";
    };
    add("vmcnt", vm, 63);
    add("expcnt", exp, 7);
    add("lgkmcnt", lgkm, 15);
    return text.empty() ? "vmcnt(63) expcnt(7) lgkmcnt(15)" : text;
  }

  [[nodiscard]] unsigned source_count() const {
    return (op_.slot('0') || op_.slot('g') ? 1u : 0u) + (op_.slot('1') ? 1u : 0u) + (op_.slot('2') ? 1u : 0u);
  }
  void bits_suffix(const char* name, unsigned bits, unsigned count) {
    std::string text = std::string(name) + ":[";
    for (unsigned n = 0; n < count; ++n) text += (n == 0 ? "" : ",") + std::to_string(bits >> n & 1u);
    suffix(text + "]");
  }

  void modifiers() {
    if (op_.encoding == Encoding::VOP3) {
      if (d_.op_sel != 0) {
        const bool destination = (d_.op_sel & 8u) != 0;
        // v_cvt_sr_*: two sources, but the bits of a third and of the destination say which byte.
        const unsigned n = has(op_.mnemonic, "v_cvt_sr_") ? 3 : source_count();
        bits_suffix("op_sel", (d_.op_sel & ((1u << n) - 1)) | (destination ? 1u << n : 0), n + 1);
      }
      clamp_and_scale();
    } else if (op_.encoding == Encoding::VOP3P) {
      packed();
    } else if (d_.modifier == Modifier::sdwa) {
      clamp_and_scale();
      sdwa();
    } else if (d_.modifier == Modifier::dpp) {
      dpp();
    }
  }
  void clamp_and_scale() {
    static constexpr const char* kScale[] = {"", "mul:2", "mul:4", "div:2"};
    if (d_.clamp) suffix("clamp");
    if (d_.omod != 0) suffix(kScale[d_.omod]);
  }
  void packed() {
    if (op_.number >= 62) {
      if (op_.slot('G') || op_.slot('g')) return;
      const unsigned blgp = d_.neg, cbsz = d_.neg_hi, abid = d_.op_sel | (d_.op_sel_hi >> 2 & 1u) << 3;
      if (cbsz != 0) suffix("cbsz:" + std::to_string(cbsz));
      if (abid != 0) suffix("abid:" + std::to_string(abid));
      if (blgp == 0) return;
      if (begins(op_.mnemonic, "v_mfma_f64") && d_.arch != Arch::gfx90a)
        bits_suffix("neg", blgp, 3);
      else
        suffix("blgp:" + std::to_string(blgp));
      return;
    }
    const unsigned n = source_count();
    const unsigned all = (1u << n) - 1;
    const bool mix = has(op_.mnemonic, "_mix");
    if ((d_.op_sel & all) != 0) bits_suffix("op_sel", d_.op_sel, n);
    if ((d_.op_sel_hi & all) != (mix ? 0 : all)) bits_suffix("op_sel_hi", d_.op_sel_hi, n);
    if (!mix && (d_.neg & all) != 0) bits_suffix("neg_lo", d_.neg, n);
    if (!mix && (d_.neg_hi & all) != 0) bits_suffix("neg_hi", d_.neg_hi, n);
    if (d_.clamp) suffix("clamp");
  }
  void sdwa() {
    static constexpr const char* kSelect[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                              "WORD_0", "WORD_1", "DWORD",  "7"};
    static constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "3"};
    const std::uint32_t word = d_.modifier_word;
    // The assembler has no destination selection for v_cvt_*_fp8 and _bf8: they write whole registers.
    const bool float8 = has(op_.mnemonic, "_fp8") || has(op_.mnemonic, "_bf8");
    if (op_.encoding != Encoding::VOPC && op_.slot('D') && !float8) {
      suffix(std::string("dst_sel:") + kSelect[word >> 8 & 7u]);
      suffix(std::string("dst_unused:") + kUnused[word >> 11 & 3u]);
    }
    if (op_.slot('0')) suffix(std::string("src0_sel:") + kSelect[word >> 16 & 7u]);
    if (op_.slot('1')) suffix(std::string("src1_sel:") + kSelect[word >> 24 & 7u]);
  }
  void dpp() {
    const std::uint32_t word = d_.modifier_word;
    const unsigned control = word >> 8 & 0x1FFu, amount = control & 15u;
    const auto number = [&](const char* name) { suffix(std::string(name) + ":" + std::to_string(amount)); };
    if (control < 0x100) {
      std::string text = "quad_perm:[";
      for (unsigned n = 0; n < 4; ++n) text += (n == 0 ? "" : ",") + std::to_string(control >> (2 * n) & 3u);
      suffix(text + "]");
    } else {
      switch (control >> 4) {
        case 0x10:
          number("row_shl");
          break;
        case 0x11:
          number("row_shr");
          break;
        case 0x12:
          number("row_ror");
          break;
        case 0x15:
          number("row_newbcast");
          break;
        case 0x13:
          suffix(amount == 0   ? "wave_shl:1"
                 : amount == 4 ? "wave_rol:1"
                 : amount == 8 ? "wave_shr:1"
                               : "wave_ror:1");
          break;
        default:
          suffix(amount == 0   ? "row_mirror"
                 : amount == 1 ? "row_half_mirror"
                 : amount == 2 ? "row_bcast:15"
                               : "row_bcast:31");
      }
    }
    suffix("row_mask:" + hex(word >> 28));
    suffix("bank_mask:" + hex(word >> 24 & 15u));
    if ((word >> 19 & 1u) != 0) suffix("bound_ctrl:1");
  }

  // ---- Memory
  static std::string signed_hex(std::int32_t value) {
    return value < 0 ? "-" + hex(static_cast<std::uint32_t>(-value)) : hex(static_cast<std::uint32_t>(value));
  }
  void smem() {
    for (unsigned n = 0; n < op_.slot_count; ++n) {
      const Slot& slot = op_.slots[n];
      if (slot.field == 'k') operand(std::to_string(d_.vdst));
      if (slot.field == 'd') operand(sgpr_name(d_.vdst, slot.width));
      if (slot.field == 'B') operand(sgpr_name(d_.srsrc, slot.width));
      if (slot.field != 'o') continue;
      if (!d_.smem_imm || d_.smem_soffset_en)
        operand(sgpr_name(d_.soffset, 1));
      else
        operand(signed_hex(d_.offset));
      if (d_.smem_imm && d_.smem_soffset_en) suffix("offset:" + signed_hex(d_.offset));
    }
    if (d_.sc0) suffix("glc");
  }
  void ds() {
    for (unsigned n = 0; n < op_.slot_count; ++n) {
      const Slot& slot = op_.slots[n];
      const unsigned reg = slot.field == 'D'   ? d_.vdst
                           : slot.field == 'A' ? d_.vaddr
                           : slot.field == 'V' ? d_.data0
                                               : d_.data1;
      operand(vgpr_name(reg, slot.width, slot.field != 'A' && d_.data_acc));
    }
    const bool two = has(op_.mnemonic, "read2") || has(op_.mnemonic, "write2") || has(op_.mnemonic, "xchg2");
    if (two) {
      if (d_.offset != 0) suffix("offset0:" + std::to_string(d_.offset));
      if (d_.offset1 != 0) suffix("offset1:" + std::to_string(d_.offset1));
    } else if ((d_.offset | d_.offset1) != 0) {
      suffix("offset:" + std::to_string(d_.offset | d_.offset1 << 8));
    }
    if (d_.gds) suffix("gds");
  }
  void cache_bits() {
    const bool cdna2 = d_.arch == Arch::gfx90a;
    if (d_.sc0) suffix(cdna2 ? "glc" : "sc0");
    if (d_.nt) suffix(cdna2 ? "slc" : "nt");
    if (d_.sc1) suffix(cdna2 ? "scc" : "sc1");
  }
  void flat() {
    const bool atomic = has(op_.mnemonic, "_atomic_");
    const bool to_lds = d_.lds && d_.arch == Arch::gfx90a;  // an opcode of its own on gfx942
    if (atomic && d_.sc0) {
      const unsigned width = op_.width('V');
      operand(vgpr_name(d_.vdst, has(op_.mnemonic, "cmpswap") ? width / 2 : width, d_.data_acc));
    }
    for (unsigned n = 0; n < op_.slot_count; ++n) {
      const Slot& slot = op_.slots[n];
      switch (slot.field) {
        case 'D':
          if (!to_lds) operand(vgpr_name(d_.vdst, slot.width, d_.data_acc));
          break;
        case 'V':
          operand(vgpr_name(d_.data0, slot.width, d_.data_acc));
          break;
        case 'A':
          if (op_.encoding == Encoding::SCRATCH)
            operand(d_.sve ? vgpr_name(d_.vaddr, 1, false) : "off");
          else
            operand(
                vgpr_name(d_.vaddr, op_.encoding == Encoding::GLOBAL && d_.saddr != kNoSaddr ? 1 : 2, false));
          break;
        case 's':
          operand(d_.saddr == kNoSaddr ? "off"
                                       : sgpr_name(d_.saddr, op_.encoding == Encoding::SCRATCH ? 1 : 2));
          break;
        default:
          break;
      }
    }
    if (d_.offset != 0) suffix("offset:" + std::to_string(d_.offset));
    cache_bits();
    if (to_lds) suffix("lds");
  }
  void buffer() {
    for (unsigned n = 0; n < op_.slot_count; ++n) {
      const Slot& slot = op_.slots[n];
      switch (slot.field) {
        case 'V':
          if (!d_.lds) operand(vgpr_name(d_.data0, slot.width, d_.data_acc));
          break;
        case 'A':
          operand(d_.offen || d_.idxen ? vgpr_name(d_.vaddr, d_.offen && d_.idxen ? 2 : 1, false) : "off");
          break;
        case 'R':
          operand(sgpr_name(d_.srsrc, 4));
          break;
        case 'O':
          operand(source_name(d_.soffset, 1, false, 0));
          break;
        default:
          break;
      }
    }
    if (op_.encoding == Encoding::MTBUF && d_.format != 1) suffix("format:" + std::to_string(d_.format));
    if (d_.idxen) suffix("idxen");
    if (d_.offen) suffix("offen");
    if (d_.offset != 0) suffix("offset:" + std::to_string(d_.offset));
    cache_bits();
    if (d_.lds) suffix("lds");
  }

  const Decoded& d_;
  const Opcode& op_;
  std::string out_;
  bool first_ = true;
};

}  // namespace
}  // namespace isa

std::string disassemble(Arch arch, const void* code, std::size_t bytes, std::size_t* length) {
  const isa::OpcodeTable* table = isa::opcode_table(arch);
  *length = 0;
  if (table == nullptr) return {};
  const isa::Decoded d = isa::decode(*table, code, bytes);
  if (d.opcode == nullptr) return {};
  *length = d.length;
  return isa::Printer(d).text();
}

}  // namespace kerncap::sim

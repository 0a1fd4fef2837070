#include "interpose/common/names.h"

#include "check.h"

using kerncap::interpose::base_name;
using kerncap::interpose::demangle;
using kerncap::interpose::kernel_kind;
using kerncap::interpose::Match;
using kerncap::interpose::Pattern;
using kerncap::interpose::without_parameters;
using kerncap::live::KernelKind;

TEST(demangled_names_lose_parameters_and_qualifiers) {
  EXPECT_EQ(demangle("_Z4vaddPKfS0_Pfi"), std::string("vadd(float const*, float const*, float*, int)"));
  EXPECT_EQ(without_parameters("vadd(float const*, float const*, float*, int)"), std::string_view("vadd"));
  const std::string_view instance = "void ns::mul<int, (type)39>(float*, int)";
  EXPECT_EQ(without_parameters(instance), std::string_view("ns::mul<int, (type)39>"));
  EXPECT_EQ(base_name("ns::mul<int, (type)39>"), std::string_view("mul"));
  EXPECT_EQ(without_parameters("(anonymous namespace)::k(int)"),
            std::string_view("(anonymous namespace)::k"));
  EXPECT_EQ(base_name("(anonymous namespace)::k"), std::string_view("k"));
  EXPECT_EQ(without_parameters("void k<(3>2)>(void (*)(int))"), std::string_view("k<(3>2)>"));
  EXPECT_EQ(base_name("k<(3>2)>"), std::string_view("k"));
  EXPECT_EQ(without_parameters("void run<main::{lambda(int)#1}>(main::{lambda(int)#1})"),
            std::string_view("run<main::{lambda(int)#1}>"));
  EXPECT_EQ(base_name("outer<int>::inner<float>"), std::string_view("inner"));
  EXPECT_EQ(without_parameters("add_kernel"), std::string_view("add_kernel"));
  EXPECT_EQ(without_parameters("k(int) [clone .cold]"), std::string_view("k"));
  EXPECT_EQ(without_parameters(")"), std::string_view(")"));
  EXPECT_EQ(without_parameters(""), std::string_view(""));
}

TEST(not_mangled_and_not_decodable_symbols_stay_as_they_are) {
  EXPECT_EQ(demangle("plain"), std::string("plain"));
  EXPECT_EQ(demangle("_Znonsense"), std::string("_Znonsense"));
}

TEST(a_name_that_doubles_with_each_of_its_parts_stays_as_it_is) {
  // f(A, P<A, A>, P<P<A, A>, P<A, A> >, ...): the last parameter has 2 to the 33rd A.
  std::string symbol = "_Z1f1A1PIS_S_E";
  for (const char digit : std::string("123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    const std::string part = std::string("S") + digit + "_";
    symbol += "S0_I" + part + part + "E";
    if (digit == '1') EXPECT_EQ(demangle(symbol), std::string("f(A, P<A, A>, P<P<A, A>, P<A, A> >)"));
  }
  EXPECT_EQ(demangle(symbol), symbol);
  const std::string deep = "_Z1f" + std::string(30'000, 'P') + "i";
  EXPECT_EQ(demangle(deep), deep);
}

TEST(patterns_are_exact_in_five_ways) {
  const std::string symbol = "_ZN2ns3mulIiEEvPfi", demangled = "void ns::mul<int>(float*, int)";
  const std::uint64_t id = 0x0123456789abcdefu;
  for (const char* text :
       {"0123456789abcdef", "012345", "0123456789ABCDEF", "_ZN2ns3mulIiEEvPfi", "_ZN2ns3mulIiEEvPfi.kd",
        "void ns::mul<int>(float*, int)", "ns::mul<int>", "mul"}) {
    EXPECT(Pattern(text, false).match(symbol, demangled, id) == Match::exact);
  }
  for (const char* text : {"ns::mul", "mul<", "<int>", "float*"}) {
    EXPECT(Pattern(text, false).match(symbol, demangled, id) == Match::part);
  }
  for (const char* text : {"01234", "123456", "mull", "", "MUL"}) {
    EXPECT(Pattern(text, false).match(symbol, demangled, id) == Match::none);
  }
}

TEST(exact_only_means_ids_and_symbols) {
  const std::string symbol = "_Z3mulPf", demangled = "mul(float*)";
  EXPECT(Pattern("mul", true).match(symbol, demangled, 7) == Match::none);
  EXPECT(Pattern("mul(float*)", true).match(symbol, demangled, 7) == Match::none);
  EXPECT(Pattern("_Z3mulPf", true).match(symbol, demangled, 7) == Match::exact);
  EXPECT(Pattern("0000000000000007", true).match(symbol, demangled, 7) == Match::exact);
}

TEST(kinds_by_name_and_metadata) {
  EXPECT(kernel_kind("__amd_rocclr_copyBuffer", true) == KernelKind::runtime);
  EXPECT(kernel_kind("Cijk_Ailk_Bljk_SB_MT64x64x16_SN", true) == KernelKind::tensile);
  EXPECT(kernel_kind("triton_poi_fused_add_0", false) == KernelKind::inductor);
  EXPECT(kernel_kind("triton_red_fused_sum_3", false) == KernelKind::inductor);
  EXPECT(kernel_kind("add_kernel", false) == KernelKind::triton);
  EXPECT(kernel_kind("triton_like", true) == KernelKind::hip);
  EXPECT(kernel_kind("_Z3mulPf", true) == KernelKind::hip);
}

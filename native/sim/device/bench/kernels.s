// The kernels of the simulator's own bench, in assembly so that what is measured does not change with a compiler.
// Assembled by bench/build.py into kernels.inc.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text

// s[0:1] kernarg: u64 pointer, u32 iterations
	.globl fma_loop
	.p2align 8
	.type fma_loop,@function
fma_loop:
	s_load_dword s3, s[0:1], 0x8
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v1, 1.0
	v_mov_b32_e32 v2, 0.5
	v_mov_b32_e32 v3, 2.0
.Lfma:
	.rept 16
	v_fma_f32 v4, v1, v2, v3
	v_fma_f32 v5, v4, v2, v1
	v_fma_f32 v6, v5, v2, v1
	v_fma_f32 v7, v6, v2, v1
	.endr
	s_sub_u32 s3, s3, 1
	s_cmp_lg_u32 s3, 0
	s_cbranch_scc1 .Lfma
	s_endpgm
.Lfma_end:
	.size fma_loop, .Lfma_end-fma_loop

	.globl fma_scalar_loop
	.p2align 8
	.type fma_scalar_loop,@function
fma_scalar_loop:
	s_load_dword s3, s[0:1], 0x8
	s_waitcnt lgkmcnt(0)
	s_mov_b32 s4, 0.5
	v_mov_b32_e32 v1, 1.0
	v_mov_b32_e32 v4, 2.0
.Lfmas:
	.rept 16
	v_fma_f32 v4, s4, v4, v1
	v_fma_f32 v5, s4, v4, v1
	v_fma_f32 v6, s4, v5, v1
	v_fma_f32 v7, s4, v6, v1
	.endr
	s_sub_u32 s3, s3, 1
	s_cmp_lg_u32 s3, 0
	s_cbranch_scc1 .Lfmas
	s_endpgm
.Lfmas_end:
	.size fma_scalar_loop, .Lfmas_end-fma_scalar_loop

	.globl scalar_loop
	.p2align 8
	.type scalar_loop,@function
scalar_loop:
	s_load_dword s3, s[0:1], 0x8
	s_waitcnt lgkmcnt(0)
	s_mov_b32 s4, 1
	s_mov_b32 s5, 2
.Lscalar:
	.rept 16
	s_add_u32 s4, s4, s5
	s_addc_u32 s5, s5, 0
	s_lshl_b32 s6, s4, 3
	s_xor_b32 s4, s6, s5
	.endr
	s_sub_u32 s3, s3, 1
	s_cmp_lg_u32 s3, 0
	s_cbranch_scc1 .Lscalar
	s_endpgm
.Lscalar_end:
	.size scalar_loop, .Lscalar_end-scalar_loop

	.macro descriptor name
	.rodata
	.p2align 6
	.amdhsa_kernel \name
		.amdhsa_next_free_vgpr 16
		.amdhsa_next_free_sgpr 16
		.amdhsa_accum_offset 16
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 16
	.end_amdhsa_kernel
	.text
	.endm
	descriptor fma_loop
	descriptor fma_scalar_loop
	descriptor scalar_loop

from triton.compiler.compiler import ASTSource, CompiledKernel

__all__ = ["ASTSource", "CompiledKernel"]

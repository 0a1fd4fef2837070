"""Functions that are compiled when they are launched."""

import inspect
import textwrap

from triton.compiler.compiler import ASTSource, compile


class Parameter:
    def __init__(self, name, annotation):
        self.name, self.is_constexpr = name, "constexpr" in str(annotation)


class JITFunction:
    def __init__(self, fn):
        self.fn, self.__name__, self.__module__ = fn, fn.__name__, fn.__module__
        self.raw_src, self.starting_line_number = inspect.getsourcelines(fn)
        text = textwrap.dedent("".join(self.raw_src))
        self.src = text[text.index("def ") :]
        annotations = fn.__annotations__
        self.arg_names = list(inspect.signature(fn).parameters)
        self.params = [Parameter(name, annotations.get(name, "")) for name in self.arg_names]
        self.noinline = self.debug = None
        self._loaded = {}

    def __getitem__(self, grid):
        return lambda *arguments, **keywords: self.run(*arguments, grid=grid, **keywords)

    def run(self, *arguments, grid, num_warps=4, num_stages=3, num_ctas=1, **constexprs):
        from triton.runtime.driver import launch, load

        options = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
        key = (*options.values(), *sorted(constexprs.items()))
        if key not in self._loaded:
            kinds = {"c_ulong": "*fp32", "c_float": "fp32", "c_int": "i32"}
            signature = {
                name: kinds[type(value).__name__]
                for name, value in zip(self.arg_names, arguments, strict=False)
            }
            signature.update(dict.fromkeys(constexprs, "constexpr"))
            made = compile(ASTSource(self, signature, constexprs, {}), options=options)
            self._loaded[key] = load(made.kernel, made.metadata.name), made.metadata
        grid = grid(constexprs) if callable(grid) else grid
        function, metadata = self._loaded[key]
        launch(function, (*grid, 1, 1)[:3], metadata, arguments)


def jit(fn):
    return JITFunction(fn)


class ConstexprFunction:
    def __init__(self, fn):
        self.fn = fn


def constexpr_function(fn):
    return ConstexprFunction(fn)

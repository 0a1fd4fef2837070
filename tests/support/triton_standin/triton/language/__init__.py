"""Values that kernels are written with."""


class constexpr:
    def __init__(self, value):
        self.value = value


class dtype:
    def __init__(self, name):
        self.name = name


float32 = dtype("fp32")

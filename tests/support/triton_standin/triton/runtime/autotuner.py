"""Choosing among configurations by launching each."""


class Config:
    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1):
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas = kwargs, num_warps, num_stages, num_ctas

    def all_kwargs(self):
        options = {"num_warps": self.num_warps, "num_ctas": self.num_ctas, "num_stages": self.num_stages}
        return {**self.kwargs, **options}


class Autotuner:
    times = (3.0, 1.0, 2.0)

    def __init__(self, fn, configs):
        self.fn, self.configs, self.best_config, self.nargs = fn, configs, None, None

    def __getitem__(self, grid):
        return lambda *arguments, **keywords: self.run(*arguments, grid=grid, **keywords)

    def prune_configs(self, keywords):
        return self.configs

    def _bench(self, *arguments, config, **keywords):
        self.fn.run(*arguments, **keywords, **config.all_kwargs())
        return [self.times[self.configs.index(config)]] * 3

    def run(self, *arguments, **keywords):
        self.nargs = dict(zip(self.fn.arg_names, arguments, strict=False))
        if self.best_config is None:
            configs = self.prune_configs(keywords)
            timings = {config: self._bench(*arguments, config=config, **keywords) for config in configs}
            self.best_config = min(timings, key=timings.get)
            self.configs_timings = timings
        self.fn.run(*arguments, **keywords, **self.best_config.all_kwargs())


def autotune(configs, key=()):
    return lambda fn: Autotuner(fn, configs)

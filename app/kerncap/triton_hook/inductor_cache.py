"""Choices that Inductor takes from a cache: the file of a kernel's best configuration, which it also asks for
kernels that it has from FxGraphCache, and config.autotune_lookup_table.

Nothing is timed then, and the autotuner that is launched has the chosen configuration alone. What there was
to choose among is seen where the cache is asked, in the process that launches: while the generated module is
executed there, which watching causes where Inductor itself would not (inductor.py's _live).
"""

import functools
import sys
import threading
import weakref

from kerncap_triton_hook import watch

_asked = threading.local()  # configs: those that the last read of a cache chose among
_lists = weakref.WeakKeyDictionary()  # an autotuner whose choice came from a cache -> the configurations
_waiting = {}  # id of one that was not launched yet -> a reference to it


def patch(module, told):
    """`told(tuner, chosen, configs, arguments, keywords)` writes such a choice down: when the kernel is
    loaded, and with the arguments when it is launched for the first time.
    """
    tuner = module.CachingAutotuner
    _patch_read(module.AutotuneCache)
    _patch_factory(module)
    if hasattr(tuner, "recheck_autotune_cache"):  # torch 2.8 and newer
        _patch_recheck(tuner)
    precompile, run = tuner.precompile, tuner.run

    @functools.wraps(precompile)
    def loaded(self, *arguments, **keywords):
        result = precompile(self, *arguments, **keywords)
        if len(self.launchers) == 1:
            _loaded(self, told, sys._getframe(1))
            if _waiting:
                tuner.run = launched
        return result

    @functools.wraps(run)
    def launched(self, *arguments, **keywords):
        if id(self) in _waiting:
            _launches(self, told, arguments, keywords)
        if not _waiting:
            tuner.run = run  # launches are as fast as they were
        return run(self, *arguments, **keywords)

    tuner.precompile = loaded


def _patch_read(cache):
    read = cache.read_best

    @functools.wraps(read)
    def read_best(self, inductor_meta, configs, *arguments, **keywords):
        best = read(self, inductor_meta, configs, *arguments, **keywords)
        if best is not None:
            _asked.configs = list(configs)
        return best

    cache.read_best = read_best


def _patch_factory(module):
    """cached_autotune, by which every generated kernel is decorated."""
    original = module.cached_autotune
    look_up = getattr(module, "lookup_autotune_config", None)  # torch 2.9 and newer

    @functools.wraps(original)
    def cached_autotune(size_hints, configs, *arguments, **keywords):
        offered = list(configs)
        _asked.configs = None
        decorate = original(size_hints, configs, *arguments, **keywords)
        asked = _asked.configs

        @functools.wraps(decorate)
        def decorated(fn):
            tuner = decorate(fn)
            _remember(tuner, asked, offered, look_up)
            return tuner

        return decorated

    module.cached_autotune = cached_autotune


@watch.guarded
def _remember(tuner, asked, offered, look_up):
    if asked is None and look_up is not None and look_up(tuner.size_hints, tuner.fn):
        asked = offered
    if asked is not None:
        _lists[tuner] = list({str(config): config for config in asked}.values())


def _patch_recheck(tuner):
    original = tuner.recheck_autotune_cache

    @functools.wraps(original)
    def recheck_autotune_cache(self, *arguments, **keywords):
        _asked.configs = None
        result = original(self, *arguments, **keywords)
        if _asked.configs is not None:
            _lists[self] = _asked.configs
        return result

    tuner.recheck_autotune_cache = recheck_autotune_cache


def _choices(tuner):
    """What a cache chose among; None where that is not known, () where the choice was none of a cache's."""
    found = _lists.get(tuner, ())
    again = getattr(tuner, "_reload_kernel", None)
    if again is not None:
        # Made in another process, or long ago: the module, loaded here, has all of them.
        more = _lists.get(again(), ())
        found = more if len(more) > len(found) else found
    if found:
        return found
    told = getattr(tuner, "autotune_cache_info", None) or {}  # torch 2.8 and newer
    return None if told.get("autotune_cache_state") == "hit" else ()


@watch.guarded
def _loaded(tuner, told, frame):
    configs = _choices(tuner)
    if configs == ():
        return
    names = frame.f_locals
    if frame.f_code.co_name == "run" and names.get("self") is tuner:  # it is loaded because it is launched
        told(tuner, tuner.launchers[0].config, configs, names.get("args", ()), names.get("kwargs", {}))
        return
    told(tuner, tuner.launchers[0].config, configs, None, {})
    at = id(tuner)
    _waiting[at] = weakref.ref(tuner, lambda _: _waiting.pop(at, None))


@watch.guarded
def _launches(tuner, told, arguments, keywords):
    _waiting.pop(id(tuner), None)  # another thread may launch it as well
    if len(tuner.launchers) == 1:
        told(tuner, tuner.launchers[0].config, _choices(tuner), arguments, keywords)

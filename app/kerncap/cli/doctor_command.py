"""`kerncap doctor`."""

from __future__ import annotations

import os
from typing import Any

import click

from kerncap.cli.output import ProgressLine, device_option, emit_json, json_option, say
from kerncap.core.device.devices import DEFAULT_SIM, resolve_device
from kerncap.core.doctor import doctor
from kerncap.core.doctor.checks import PROBLEM


@click.command()
@click.option("--self-test", is_flag=True, help="Also go through profile, extract, replay and validate once.")
@click.option("--costs", is_flag=True, help="Print the simulator's cost table and nothing else.")
@device_option
@json_option
def command(self_test: bool, costs: bool, device: str | None, as_json: bool) -> Any:
    """What this machine has, what it lacks, and how to get it. Exit 4 where something needed is missing."""
    if costs:
        # Only simulated devices have a table: a real one that is merely the default is passed over.
        wanted = device or os.environ.get("KERNCAP_DEVICE", "")
        arch = (resolve_device(wanted).arch if device or wanted.startswith("sim:") else None) or DEFAULT_SIM
        table = doctor.cost_table(arch)
        if as_json:
            emit_json({"schema": doctor.SCHEMA, "arch": arch, "costs": table.splitlines()})
        else:
            say(table.rstrip("\n"))
        return 0
    checks = doctor.run_checks(device)
    if self_test:
        line = ProgressLine()
        checks += doctor.self_test(device, lambda step: line.show(f"self-test: {step}"))
        line.clear()
    ok = all(check.state != PROBLEM for check in checks)
    if as_json:
        emit_json({"schema": doctor.SCHEMA, "ok": ok, "checks": [check.to_json() for check in checks]})
    else:
        for check in checks:
            say(f"{check.state:<8} {check.name:<10} {check.detail}")
            if check.fix:
                say(f"{'':<8} {'':<10} -> {check.fix}")
    return 0 if ok else 4

"""Devices, and the runtimes, drivers and toolkits that are installed for them."""

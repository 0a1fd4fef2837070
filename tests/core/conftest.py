from front_end import built_natives, fake, fake_natives  # noqa: F401

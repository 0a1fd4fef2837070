"""The workbench: the edit loop of one reproducer on a screen. `screen.WorkbenchScreen` is the way in."""

"""The checks of the simulators by the vendors' SDKs, a module each; see tests/sdk."""

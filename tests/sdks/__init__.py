"""Checks of the simulators with the vendors' SDKs, one module for each SDK; see tests/sdk."""

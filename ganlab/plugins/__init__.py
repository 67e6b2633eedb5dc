"""Plugins: discovery, validation and import, the components they offer, and the attribution of errors."""

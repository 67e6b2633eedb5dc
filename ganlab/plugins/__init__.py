"""Plugins: finding, checking and importing them, the components they offer, and whose code an error comes from."""

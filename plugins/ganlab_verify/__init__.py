"""The applications `ganlab verify` and the conformance kit: is a component, or a set-up, what it claims to be?"""

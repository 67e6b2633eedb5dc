"""Makes components by their kinds and names, as experiment files do."""

from functools import partial

import ganlab


def component(kind, name, /, **arguments):
    return ganlab.component(kind, name)(**arguments)


architecture, constraint = partial(component, "architectures"), partial(component, "constraints")
dataset, loss = partial(component, "datasets"), partial(component, "losses")
optimizer = partial(component, "optimizers")

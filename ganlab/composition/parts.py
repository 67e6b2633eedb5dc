"""The parts of an experiment, and the kinds of components that they are."""

# The kind of component of each part of an experiment. The strategy comes first: it decides what devices there are, and
# must do so before anything else touches TensorFlow.
PARTS = {
    "strategy": "strategies",
    "dataset": "datasets",
    "source": "datasets",
    "architecture": "architectures",
    "loss": "losses",
    "constraints": "constraints",
    "generator_constraints": "constraints",
    "augmentations": "augmentations",
    "critic_optimizer": "optimizers",
    "generator_optimizer": "optimizers",
    "evaluators": "evaluators",
    "diagnostics": "diagnostics",
    "optimizers": "optimizers",
    "network_constraints": "constraints",
}
# The parts that take several components.
LISTS = ("constraints", "generator_constraints", "augmentations", "evaluators", "diagnostics")
# The parts that take one component, or several, for each of the networks that they name.
MAPPINGS = {"optimizers": "one", "network_constraints": "several"}

# The parts that may be left out.
OPTIONAL = (*MAPPINGS, "source")
# The parts that plugins have defaults for, the strategy first; the critic's only where there is a critic.
DEFAULTED = ("strategy", "loss", "generator_optimizer", "critic_optimizer")
# The settings that files are without where they have this value.
UNUSED: dict[str, object] = {**dict.fromkeys((*OPTIONAL, *DEFAULTED)), "generator_steps": 1}

# The settings that a trained generator depends on, besides its weights and what run.json has.
OF_GENERATOR = (
    "architecture",
    "generator_constraints",
    "precision",
    "ema_decay",
    "ema_half_life",
    "ema_buffers",
    "steps",
    "seed",
)

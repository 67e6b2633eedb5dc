"""Experiments of four steps."""

BASE = """
include 'base/wgan_gp.gin'
experiment.steps = 4
experiment.critic_steps = 1
experiment.batch_size = 16
experiment.checkpoint_every = 2
experiment.evaluate_every = 2
experiment.seed = 3
optimizers.adam.learning_rate = 0.01
"""
POINTS = f"""{BASE}
experiment.dataset = @datasets.gaussian_ring()
experiment.architecture = @architectures.mlp()
architectures.mlp.width = 16
architectures.mlp.latent_dim = 3
"""
DIGITS = f"""{BASE}
experiment.dataset = @datasets.digits()
experiment.architecture = @architectures.dcgan()
experiment.ema_decay = 0.9
architectures.dcgan.channels = 8
architectures.dcgan.latent_dim = 5
strategies.mirrored.virtual_replicas = 2
"""
BFLOAT16 = ("--param", "experiment.precision='mixed_bfloat16'")

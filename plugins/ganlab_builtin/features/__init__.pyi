# Made by tools/stubs.py.
from ganlab_builtin.features.classifier import Classifier as Classifier
from ganlab_builtin.features.inception import Inception as Inception
from ganlab_builtin.features.onnx import Onnx as Onnx
from ganlab_builtin.features.pixels import Pixels as Pixels

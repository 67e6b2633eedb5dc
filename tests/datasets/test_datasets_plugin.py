import subprocess
import sys

import numpy as np
from idxfiles import write
from PIL import Image


def test_making_datasets_does_not_import_tensorflow(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((4, 2)))
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "a.png")
    images, labels = write(tmp_path / "images", np.ones((4, 3, 3))), write(tmp_path / "labels", np.arange(4))
    program = f"""
import sys
from ganlab_builtin.datasets import *
Digits(); GaussianRing(); GaussianGrid(); SwissRoll()
Arrays(path={str(tmp_path / "rows.npy")!r}); ImageFolder(path={str(tmp_path)!r})
StackedMnist(dataset=Idx(images={images!r}, labels={labels!r}))
print([name for name in ("tensorflow", "keras", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")

"""The paper's updates with their signs as printed."""

import numpy as np
import pytest

from reticent.belief.information import secret_information_bits
from reticent.problem.synthetic import synthetic
from reticent.study.signs import printed_information_bits, printed_signs


def test_theorem_3_as_printed_takes_bits_away():
    model = synthetic()
    assert max(printed_information_bits()) < -0.1
    assert np.allclose(printed_information_bits(), -secret_information_bits(model.prior, model.channel))


@pytest.mark.slow
def test_printed_signs_do_not_learn():
    rows = {row["updates"]: row for row in printed_signs()}
    # Releasing once costs 1, stopping at once 25, releasing for ever 20, where it is cut.
    assert rows["corrected"]["cost"] < 1.5
    for name in ("critic as printed", "actor as printed", "both as printed"):
        assert rows[name]["cost"] > 15
    assert rows["corrected"]["critic_loss"] < 0.01
    assert rows["both as printed"]["critic_loss"] > 100
    assert rows["critic as printed"]["critic_loss"] > 5 * rows["critic as printed"]["critic_loss_at_first"]

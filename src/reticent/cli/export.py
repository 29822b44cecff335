"""`reticent export`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from reticent.cli.options import check_writable, model_of
from reticent.errors import InputError


@dataclass(frozen=True)
class Export:
    """Export for other programs: a problem, without its bound, as a POMDP file for SARSOP or pomdp-solve; or a trained
    actor as ONNX."""

    source: Annotated[Positional[str], arg(metavar="PROBLEM|POLICY")]
    """A JSON problem file, or `synthetic`; a policy file for .onnx."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """The file to write; its suffix selects the format: .pomdp or .onnx (see `reticent docs export`)."""
    discount: float = 0.999
    """.pomdp: discount of future costs. Many solvers need one below 1; the optimal cost is then a little too low."""
    time_cost: float = 1.0
    """.pomdp: price C_T of one release."""
    error_penalty: float = 50.0
    """.pomdp: price lambda of a wrong guess of the useful value at the stop."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Write what the ending of the file asks for."""
        formats = {".pomdp": self._pomdp, ".onnx": self._onnx}
        write = formats.get(self.out.suffix.lower())
        if write is None:
            endings = " or ".join(formats)
            raise InputError(f"-o {str(self.out)!r} must end in {endings}, which says what to write.")
        check_writable(self.out)
        try:
            write()
        except OSError as error:
            raise InputError(f"Cannot write {str(self.out)!r}: {error.strerror or error}.") from error
        if self.json:
            print(json.dumps({"file": str(self.out)}))
        else:
            print(f"Saved {self.out}.")

    def _pomdp(self) -> None:
        from reticent.problem.export import pomdp_text
        from reticent.problem.objective import Objective

        objective = Objective(self.time_cost, self.error_penalty)
        text = pomdp_text(model_of(self.source), objective, self.discount)
        self.out.write_text(text, encoding="utf-8")

    def _onnx(self) -> None:
        import hashlib

        from reticent.policy.onnx import onnx_model
        from reticent.policy.store import PolicyFile

        file = PolicyFile.load(self.source)
        self.out.write_bytes(onnx_model(file, hashlib.sha256(Path(self.source).read_bytes()).hexdigest()))

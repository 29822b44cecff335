"""Which subjects a worker decides for."""

from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True)
class Share:
    """The subjects of one of several workers: those whose name falls to it, the same ones whenever it is started."""

    index: int = 0
    workers: int = 1

    def holds(self, subject: str) -> bool:
        """Whether this worker decides for this subject, and no other one does."""
        return self.workers == 1 or crc32(subject.encode(errors="surrogatepass")) % self.workers == self.index

    @property
    def ending(self) -> str:
        """What sets names of this worker apart from those of the others."""
        return "" if self.workers == 1 else f"-{self.index}"


EVERYTHING = Share()

"""What readers give, encoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """Its name among the others."""


Record = TypeVar("Record", bound=Named)
Encoded = TypeVar("Encoded")


class EncodedById(Mapping[str, Encoded], Generic[Record, Encoded]):
    """Records by their ids, each encoded when it is first asked for and then kept.

    Args:
        records: may name one several times.
        encode: of one record.
        kind: what complaints call them, as "documents".

    Raises:
        ValueError: two different records of one id.
        KeyError: an id asked for that no record has.
    """

    def __init__(self, records: Iterable[Record], encode: Callable[[Record], Encoded], *, kind: str) -> None:
        self._records: dict[str, Record] = {}
        self._encoded: dict[str, Encoded] = {}
        self._encode = encode
        for record in records:
            if self._records.setdefault(record.id, record) != record:
                raise ValueError(f"there are two different {kind} {record.id}; name them apart")

    def __getitem__(self, name: str) -> Encoded:
        if name not in self._encoded:
            self._encoded[name] = self._encode(self._records[name])
        return self._encoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

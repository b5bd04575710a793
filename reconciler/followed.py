"""Which kinds are watched, as the cluster begins and ceases to serve them."""

from collections.abc import Sequence

from reconciler import claims
from reconciler.cache import Cache
from reconciler.discovery import Discovery
from reconciler.sharing import shared_with
from reconciler.watches import Watches
from reconciler.watching import Watch
from schedulers.abilities import ForgetsWaiting
from schedulers.contract import GroupKind, Provider


class Followed:
    """The watches of one process. `update` is called from one thread, the rest from any."""

    def __init__(self, factory: Watches, discovery: Discovery, providers: Sequence[Provider], cache: Cache) -> None:
        """Prepare the watches that are always needed; nothing runs yet."""
        self._factory, self._discovery, self._providers, self._cache = factory, discovery, providers, cache
        self._of_objects = factory.of_objects()
        self._of_groups: dict[GroupKind, list[Watch[object]]] = {}
        self._of_placed: list[Watch[object]] = []

    def start(self) -> None:
        """Start the watches that are always needed."""
        _started(self._of_objects)

    def stop(self) -> None:
        """Stop all watches."""
        for watch in self.watches():
            watch.stop()

    def watches(self) -> list[Watch[object]]:
        """Give all watches."""
        groups = [watch for watches in list(self._of_groups.values()) for watch in watches]
        return [*self._of_objects, *groups, *self._of_placed]

    def whole(self) -> bool:
        """Tell whether all is known; without the watch of a kind that is served, all objects of it would be missing."""
        return self._wanted() <= self._of_groups.keys() and all(watch.has_synced for watch in self.watches())

    def update(self) -> None:
        """Watch the kind that counts for each provider and what belongs to it; stop what is gone."""
        wanted = self._wanted()
        for kind in set(self._of_groups) - wanted:
            for watch in self._of_groups.pop(kind):
                watch.stop()
            self._cache.groups.pop(kind, None)
        for kind in wanted - set(self._of_groups):
            self._of_groups[kind] = _started(self._factory.of_groups(kind))
        forgetful = any(isinstance(p, ForgetsWaiting) and self._discovery.first(p.kinds) for p in self._providers)
        if forgetful and not self._of_placed:
            self._of_placed = _started(self._factory.of_placed_pods())

    def _wanted(self) -> set[GroupKind]:
        """Give the kinds to follow: of groups, of what groups of that kind share, of claims."""
        firsts = ((provider, self._discovery.first(provider.kinds)) for provider in self._providers)
        groups = [(provider, kind) for provider, kind in firsts if kind is not None]
        shared = [one for provider, kind in groups for one in shared_with(provider, kind)]
        served = [kind for kind in shared if kind in self._discovery.served]
        return {*(kind for _, kind in groups), *served, *claims.kinds_to_watch(self._discovery.first)}


def _started(watches: list[Watch[object]]) -> list[Watch[object]]:
    for watch in watches:
        watch.start()
    return watches

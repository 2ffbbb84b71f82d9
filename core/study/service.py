"""Studies trained in the background of a server: one thread, whatever pages are open or closed meanwhile."""

import logging
import threading

from core.cluster import ClusterError
from core.jobs import Workers
from core.study.database import StoreError
from core.study.runner import Progress, Runner
from core.study.store import Store


class Service:
    """Trains the studies it is given, side by side, until nothing of them is left to do; then more may come.

    What is going on stands in the store, where everybody can see it, and stop it (Store.stop).
    """

    def __init__(self, store: Store, workers: Workers):
        self.store, self.workers = store, workers
        self.seen = Progress()
        self.trouble = ""  # why it has ended before its time
        self._lock = threading.Lock()
        self._runner: Runner | None = None

    def start(self, study: int):
        """Train what is queued of a study."""
        with self._lock:
            self.trouble = ""
            if self._runner:
                self._runner.add(study)
                return
            self._runner = Runner(self.store, [study], self.workers)
            threading.Thread(target=self._work, args=(self._runner,), name="studies", daemon=True).start()

    def has(self, study: int) -> bool:
        """Whether it is working on a study."""
        with self._lock:
            return self._runner is not None and study in self._runner.studies

    def _work(self, runner: Runner):
        try:
            while True:
                for self.seen in runner.progress():
                    pass
                with self._lock:
                    if not runner.asked:
                        self._runner = None
                        return
        except Exception as error:
            if not isinstance(error, StoreError | ClusterError):
                logging.exception("the studies' thread failed")
            with self._lock:
                self._runner, self.trouble = None, f"{error}" or type(error).__name__

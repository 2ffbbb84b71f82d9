"""Studies trained in the background of a server: one thread, whatever pages are open or closed meanwhile."""

import logging
import threading

from core.settings.errors import ServerError
from core.study.database.store import Store
from core.study.runner import Progress, Runner
from core.workers.protocol import WorkerPool


class Service:
    """Trains the studies it is given, side by side, until nothing of them is left to do; then more may come.

    What is going on stands in the store, where everybody can see it, and stop it (Store.stop).
    """

    def __init__(self, store: Store, workers: WorkerPool) -> None:
        self.store, self.workers = store, workers
        self.seen = Progress()
        self.trouble = ""  # why it has ended before its time
        self._lock = threading.Lock()
        self._runner: Runner | None = None

    def start(self, study: int) -> None:
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

    def _work(self, runner: Runner) -> None:
        try:
            while True:
                for self.seen in runner.progress():
                    pass
                with self._lock:
                    if not runner.asked:
                        self._runner = None
                        return
        except Exception as error:
            logging.error("the studies' thread has ended: %s", error, exc_info=not isinstance(error, ServerError))
            told = error.told if isinstance(error, ServerError) else type(error).__name__  # visitors see it
            with self._lock:
                self._runner, self.trouble = None, told

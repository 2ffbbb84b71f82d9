"""What there is once in a process, for all visitors."""

import functools
import threading
from collections.abc import Callable


def once(make: Callable) -> Callable:
    """Decorator: what is made for given arguments is made once, by whoever comes first; the others wait for it.

    Not st.cache_resource, which any browser can have emptied: worker processes would be started again beside the old ones.
    """
    things, lock = {}, threading.RLock()

    @functools.wraps(make)
    def get(*given):
        with lock:
            if given not in things:
                things[given] = make(*given)
            return things[given]

    get.clear = things.clear
    return get

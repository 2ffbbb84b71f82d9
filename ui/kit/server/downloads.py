"""Files that a visitor takes away, until the browser has fetched them.

Streamlit makes such a file when its button is pressed, and deletes it once two scripts have ended since, anybody's: with a class at
work that is a tenth of a second, and the browser found nothing at the address it had just been told. And of a button that was pressed it
forgets what it makes as soon as its page is drawn anew, by another visitor's script too: who typed and then pressed got no file.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

import logging
import re
import time
from collections import Counter
from typing import cast

from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError

from core.settings.memory import max_mb

KEPT = 60.0  # seconds
ON_ITS_WAY = 10.0  # seconds that a click may take to come here
EARLIER = 4  # drawings of a button before the last one, whose click is still answered
NOT_THERE = re.compile(r"Deferred file .* not found$", re.DOTALL)  # what somebody made up may have lines
LOGGER = "streamlit.runtime.backend_operation_handler"

_unused = MediaFileManager._get_inactive_file_ids


class TooMany(RuntimeError):
    """So many files are being made for this visitor that another one has to wait."""


def keep_a_while() -> None:
    """From here on files that are taken away stay for a minute, the latest, and of the others as many as an eighth of a run's memory holds.

    What a button makes stays for ten seconds after it was drawn anew."""
    MediaFileManager._get_inactive_file_ids = _old  # type: ignore[method-assign]
    MediaFileManager._remove_orphaned_deferred_callables = _forget  # type: ignore[method-assign]
    logging.getLogger(LOGGER).addFilter(_worth_a_line)


def _old(files: MediaFileManager) -> set[str]:
    unused, now, room = _unused(files), time.monotonic(), (max_mb() << 20) // 8
    since = {
        each: vars(file).setdefault("unused_since", now)
        for each, file in files._file_metadata.items()  # in the order in which they were made, also those of one moment
        if each in unused and file.kind == MediaFileKind.DOWNLOADABLE
    }
    for place, each in enumerate(reversed(sorted(since, key=since.__getitem__))):
        there = files.read_file(each)
        size = there.content_size if there else 0
        if now - since[each] < KEPT and (size <= room or place == 0):
            unused.discard(each)
            room -= size if size <= room else 0
    return unused


def _forget(files: MediaFileManager) -> None:
    """Forget what no button makes any more, once no click on it can be on its way. Called under the lock of the files."""
    drawn = {each for by_place in files._files_by_session_and_coord.values() for each in by_place.values()}
    unused = {each: made for each, made in files._deferred_callables.items() if each not in drawn}  # as they were drawn
    now, later = time.monotonic(), Counter[tuple[str, str]]()
    for each, made in reversed(unused.items()):
        later[button := (made["session_id"], made["element_id"])] += 1
        since = cast("dict[str, float]", made).setdefault("unused_since", now)
        if later[button] > EARLIER or now - since >= ON_ITS_WAY:
            files._drop_deferred_id(each)


def _worth_a_line(record: logging.LogRecord) -> bool:
    """Of a refusal the page itself tells; the log would grow by a traceback with each, as often as somebody likes. So it would with
    what somebody made up, or what is forgotten: of what fails while a file is made, Streamlit's own error has the cause."""
    error = record.exc_info and record.exc_info[1]
    if isinstance(error, MediaFileStorageError) and not error.__cause__ and NOT_THERE.match(str(error)):
        return False
    while isinstance(error, BaseException):
        if isinstance(error, TooMany):
            return False
        error = error.__cause__
    return True

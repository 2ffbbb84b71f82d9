"""Ablation Lab: find out what each part of a transformer block is for, by taking it out.

`streamlit run app.py` imports this file for what serves it; whoever opens the start page runs it.
"""

from streamlit.starlette import App

if __name__ == "__main__":
    from ui.start import start

    start()
else:
    from starlette.middleware import Middleware

    from ui.kit.server.connections.frames import count_frames
    from ui.kit.server.connections.handles import Handles
    from ui.kit.server.connections.left import keep_who_looked
    from ui.kit.server.connections.messages import Messages
    from ui.kit.server.connections.silent import Silent
    from ui.kit.server.document import routes
    from ui.kit.server.downloads import keep_a_while
    from ui.kit.server.forged import leave_out
    from ui.kit.server.hidden import Hidden, hide_the_path
    from ui.kit.server.lifespan import lifespan
    from ui.kit.server.runs import cheaper
    from ui.kit.server.uploads import UploadLimit, count_what_is_held

    keep_a_while()
    keep_who_looked()
    count_frames()
    count_what_is_held()
    hide_the_path()
    cheaper()
    leave_out()
    between = [Middleware(each) for each in (Handles, Hidden, Messages, Silent, UploadLimit)]
    app = App(__file__, routes=routes(), middleware=between, lifespan=lifespan)

"""What can be taken away from the page "Studies" beside its tables and pictures: the study's file, and every number."""

import io

from core.export.sheets import slug
from core.study.tables import row_table
from ui.studies.context import StudyContext


def files(context: StudyContext | None) -> dict:
    """What can be taken away beside the tables: label -> (name of the file, what makes its bytes)"""
    if context is None:
        return {}
    name = slug(context.name, context.number)
    file = {"The study's file (TOML)": (f"{name}.toml", lambda: context.source.encode())}
    return (
        file
        if context.store is None
        else file
        | {
            "Every number (Parquet)": (f"{name}_rows.parquet", lambda: parquet(context)),
        }
    )


def parquet(context: StudyContext) -> bytes:
    """Every row of every run."""
    buffer = io.BytesIO()
    row_table(context.store, context.number).to_parquet(buffer, index=False)
    return buffer.getvalue()

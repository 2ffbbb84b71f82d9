"""Config, the settings of a model, in three files: as it was published, what attention has had since, and what else."""

from core.model.config.config import Config

__all__ = ["Config"]

"""What a project has set down for its calls, in `[tool.gradtrend]` of pyproject.toml or in gradtrend.toml."""

from gradtrend.pipeline.config.load import load_config
from gradtrend.pipeline.config.settings import Config, Ignore, Setting, settings_in_force

__all__ = ["Config", "Ignore", "Setting", "load_config", "settings_in_force"]

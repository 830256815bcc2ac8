"""The addresses of the project, told by the forge that builds a release: nobody's copy claims a home it does not have.

On GitHub, and on forges that run its workflows, GITHUB_SERVER_URL and GITHUB_REPOSITORY say where the project is. A
build anywhere else has no project URLs, instead of invented ones.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

if TYPE_CHECKING:
    from collections.abc import Mapping


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the project's addresses as its forge tells them; none elsewhere."""
    server, repository = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
    if not (server and repository):
        return {}
    home = f"{server}/{repository}"
    files = f"{home}/blob/main"
    return {
        "Homepage": home,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{home}/issues",
        "Security": f"{files}/SECURITY.md",
    }


class Addresses(MetadataHookInterface):
    """Add the addresses to the package's metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the URLs."""
        metadata["urls"] = addresses(os.environ)

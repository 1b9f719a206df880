"""What torch calls at the end of ``import torch`` (entry-point group ``torch.backends``)."""

from __future__ import annotations

import logging
import os


def autoload() -> None:
    """Enable autoheur when the environment variable ``AUTOHEUR`` says so: ``1`` or a mode's name; else do nothing.

    Where ``AUTOHEUR_CAPTURE`` names a folder, as ``autoheur capture`` lets it do, shapes are captured into it. Never
    raises: torch would turn an exception into a failed ``import torch``.
    """
    folder = os.environ.get("AUTOHEUR_CAPTURE")
    if folder:
        try:
            from autoheur.inductor import capture

            capture.capture_into(folder)
        except Exception as error:
            logging.getLogger("autoheur.inductor").warning("AUTOHEUR_CAPTURE: nothing is captured: %s", error)
    setting = os.environ.get("AUTOHEUR", "").strip().lower()
    if setting in ("", "0", "off", "false", "no"):
        return
    try:
        from autoheur.inductor import switch

        switch.enable("use" if setting in ("1", "on", "true", "yes") else setting)
    except Exception as error:
        logging.getLogger("autoheur.inductor").warning("AUTOHEUR=%s: autoheur stays off: %s", setting, error)
